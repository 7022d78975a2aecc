"""Embeds passages and makes the index that the service searches.

    python -m services.question_answering.build_index --model MODEL --index INDEX --pages pages.jsonl

Sources: ``--pages`` is a file of KILT pages (cut into passages here), ``--passages`` one of Atlas' passage files, each
JSON lines. It may be killed at any moment and started again with the same command.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import torch
from rich.console import Console
from rich.progress import Progress

from services import bundled_pages
from services.question_answering.checkpoint import Model, ModelError, load_model
from services.question_answering.index_folder import (
    MANIFEST_FILE,
    Blocks,
    IndexManifest,
    UnusablePassagesError,
    finish,
    read_manifest,
)
from services.question_answering.passage_index import KINDS, Kind, VectorIndexError
from services.question_answering.passages import (
    MalformedPassageError,
    PagePassage,
    PassageStore,
    split_page,
    write_passages,
)
from toolformer.model_files.digests import file_digest

BLOCK_PASSAGES: Final = 8_192

logger = logging.getLogger(__name__)


def ensure_index(
    index: Path, model: Model, source: Source, kind: Kind = "exact", *, show_progress: bool = False
) -> IndexManifest:
    """The manifest of an index at ``index``: the one that is there if it fits, else a new one.

    Raises:
        VectorIndexError: the source cannot be read or indexed.
        UnusablePassagesError: ``index`` is a folder of something else.
    """
    index.mkdir(parents=True, exist_ok=True)
    with bundled_pages.locked(index):
        return _ensure_locked(index, model, source, kind, show_progress)


class Source:
    """Where passages come from.

    Args:
        path: a file of JSON lines.
        pages: whether they are KILT pages; else they are Atlas' passages.
    """

    def __init__(self, path: Path, *, pages: bool) -> None:
        self._path, self._pages = path, pages

    def name(self, passage_words: int) -> str:
        """A text that changes when the passages would."""
        cut = f", cut at {passage_words} words" if self._pages else ""
        return f"{self._path.name}, {file_digest(self._path)}{cut}"

    def read(self, passage_words: int) -> Iterator[PagePassage]:
        """The passages in order.

        Raises:
            VectorIndexError: a line is not what it should be; the message names it.
        """
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    record = json.loads(line)
                    if not isinstance(record, dict):
                        raise MalformedPassageError("it is not a JSON object")
                    if self._pages:
                        yield from split_page(record, passage_words)
                    else:
                        yield PagePassage.of_record(record)
                except ValueError as error:
                    raise VectorIndexError(f"line {number} of {self._path.name} cannot be used: {error}") from error


def _ensure_locked(index: Path, model: Model, source: Source, kind: Kind, show_progress: bool) -> IndexManifest:
    words = model.settings.passage_words
    started = index / "started.json"
    try:
        wanted = {"source": source.name(words), "retriever": model.settings.retriever_digest, "kind": kind}
    except OSError as error:
        raise VectorIndexError(f"the passages cannot be read: {error}") from error
    if (index / MANIFEST_FILE).exists():
        manifest = read_manifest(index)
        if {name: getattr(manifest, name) for name in wanted} == wanted:
            return manifest
        logger.info("%s holds an index of something else; it is made again", index)
        _clear(index)
    elif not started.exists() and any(index.iterdir()):
        raise UnusablePassagesError(f"{index} holds files, but no index; give another folder, or an empty one")
    if started.exists() and json.loads(started.read_text(encoding="utf-8")) != wanted:
        _clear(index)
    if not started.exists():
        count = write_passages(index, source.read(words))
        if not count:
            raise VectorIndexError("the source holds no passage")
        # Only now: a process that finds this file finds all passages.
        started.write_text(json.dumps(wanted), encoding="utf-8")
    return _embed(index, model, wanted["source"], kind, show_progress)


def _embed(index: Path, model: Model, source: str, kind: Kind, show_progress: bool) -> IndexManifest:
    blocks, passages = Blocks(index), PassageStore(index)
    with contextlib.closing(passages), Progress(console=Console(stderr=True), disable=not show_progress) as progress:
        bar = progress.add_task("embedding passages", total=len(passages))
        for number, block in enumerate(_in_blocks(passages)):
            if not blocks.has(number):
                blocks.write(number, model.retriever.embed_passages(block).to(torch.float16).numpy())
            progress.advance(bar, len(block))
            done = number * BLOCK_PASSAGES + len(block)
            logger.info("%s of %s passages are embedded", f"{done:,}", f"{len(passages):,}")
        manifest = IndexManifest(
            source=source,
            retriever=model.settings.retriever_digest,
            kind=kind,
            passages=len(passages),
            width=model.retriever.width,
        )
    finish(index, manifest)
    (index / "started.json").unlink()
    return manifest


def _in_blocks(passages: Iterable[PagePassage]) -> Iterator[list[PagePassage]]:
    rest = iter(passages)
    while block := list(islice(rest, BLOCK_PASSAGES)):
        yield block


def _clear(index: Path) -> None:
    for path in index.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def main(arguments: Sequence[str] | None = None) -> None:
    """Embeds passages and makes the index that the service searches."""
    parser = argparse.ArgumentParser(prog="python -m services.question_answering.build_index", description=main.__doc__)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model whose retriever embeds")
    parser.add_argument("--index", type=Path, required=True, help="folder of the index")
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--pages", type=Path, help="file of KILT pages as JSON lines")
    chosen.add_argument("--passages", type=Path, help="file of Atlas' passages as JSON lines: id, title, section, text")
    parser.add_argument("--kind", choices=KINDS, default="exact", help="what is searched (default: exact)")
    parser.add_argument("--device", default="cpu", help="where to embed: cpu (the default), cuda")
    errors = (ModelError, VectorIndexError, UnusablePassagesError)
    bundled_pages.build_command(parser, "question_answering", _build, errors, arguments)


def _build(options: argparse.Namespace) -> IndexManifest:
    model = load_model(options.model, device=options.device, with_reader=False)
    source = Source(options.pages or options.passages, pages=options.pages is not None)
    return ensure_index(options.index, model, source, options.kind, show_progress=sys.stderr.isatty())


if __name__ == "__main__":
    main()
