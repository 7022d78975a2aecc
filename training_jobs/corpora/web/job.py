"""The beginning of a run: for each tool the texts that its heuristic keeps, from whatever files there are."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from toolformer.model_files.digests import quick_digest
from toolformer.model_files.whole import write_whole
from toolformer.tools import Tool
from training_jobs.corpora.web.language_id import FastTextLanguages
from training_jobs.corpora.web.readers import CorpusError, Read, read
from training_jobs.corpora.web.selecting import HELD_OUT_FILE, Selector, SelectSettings, select_files
from training_jobs.corpora.web.tokens import model_spans
from training_jobs.errors import StageError
from training_jobs.run_folder import RunFolder
from training_jobs.runner.parts import differing, write_json
from training_jobs.settings import positive

DONE: Final = "done.json"


def select_texts(
    folder: RunFolder,
    files: Sequence[Path],
    tools: Sequence[Tool],
    *,
    tokenizer: Path,
    language_id: Path | None,
    seed: int,
    hold_out: int,
    restart: bool,
    console: Console,
) -> None:
    """Write ``RUN/corpus/<Tool>.jsonl`` of the texts in ``files``, if an earlier run has not; ``hold_out`` of them are
    set apart.

    Killed, it begins again: it takes minutes where the stages behind it take hours.

    Raises:
        StageError: if a file cannot be read, or the corpus there is of other files or settings.
    """
    corpus = folder.target("corpus", "any").parent
    try:
        settings = {
            "files": {path.name: quick_digest(path) for path in files},
            "tools": [tool.name for tool in tools],
            "tokenizer": quick_digest(tokenizer),
            "language_id": language_id and quick_digest(language_id),
            "seed": seed,
            **({"hold_out": hold_out} if hold_out else {}),  # not in what earlier versions wrote
        }
    except OSError as error:
        raise StageError(f"{error.filename}: cannot be read ({error.strerror}); correct the path") from error
    marker = corpus / DONE
    if marker.is_file() and not restart:
        if differ := differing(json.loads(marker.read_bytes()), settings):
            raise StageError(f"{corpus} was made from other {differ}: give --restart to replace it, or another --run")
        console.print(f"corpus: is done already, in {corpus}", markup=False, highlight=False, soft_wrap=True)
        return
    try:
        languages = FastTextLanguages(language_id) if language_id else None
        how = SelectSettings(seed=seed, spans=model_spans(tokenizer), hold_out=hold_out)
        selector = Selector([tool.name for tool in tools], how, languages)
        counts = select_files(_read_all(files, console), corpus, selector)
    except (CorpusError, ValueError) as error:
        raise StageError(str(error)) from error
    kept = ", ".join(f"{tool} {sum(found.values()):,}" for tool, found in counts.kept.items())
    console.print(f"corpus: {counts.read:,} texts read; for {kept}", markup=False, highlight=False, soft_wrap=True)
    write_json(marker, settings)


def take_corpus(folder: RunFolder, corpus: Path, tools: Sequence[Tool], restart: bool, console: Console) -> None:
    """Copy the documents of each of ``tools`` that ``corpus`` has to ``RUN/corpus``.

    Raises:
        StageError: if it has none, or the corpus of the run is another.
    """
    found = {tool.name: path for tool in tools if (path := corpus / f"{tool.name}.jsonl").is_file()}
    if not found:
        raise StageError(f"--corpus: {corpus} has no file <Tool>.jsonl of these tools; name the folder that has them")
    for tool, path in found.items():
        target, texts = folder.target("corpus", tool), path.read_text(encoding="utf-8")
        if target.is_file() and not restart and target.read_text(encoding="utf-8") != texts:
            raise StageError(f"{target} was made from other texts: give --restart to replace it, or another --run")
        write_whole(target, texts)
        console.print(f"corpus: {texts.count(chr(10)):,} texts for {tool}", highlight=False)


def _read_all(files: Sequence[Path], console: Console) -> Iterator[Read]:
    for number, file in enumerate(files, start=1):
        console.print(f"corpus: file {number} of {len(files)}, {file.name}", markup=False, highlight=False)
        yield from read(file)


def add_hold_out(parser: argparse.ArgumentParser) -> None:
    """Add the option of that name."""
    parser.add_argument(
        "--hold-out",
        type=positive,
        default=0,
        metavar="N",
        help=f"set N texts apart in {HELD_OUT_FILE}, for finetune's --held-out; the paper has 1,000 (0)",
    )
