"""Builds the index that the service reads, whole or not at all.

    toolformer index wiki --pages bundled --index var/wiki_search/index
    toolformer index wiki --pages kilt_knowledgesource.json --index /data/kilt-index
    toolformer index wiki --pages extracted/ --index /data/wiki-index

Pages are cut into passages, and Lucene indexes those, both with all cores. All of it happens in a folder beside the
index, which takes the index's name only when it is complete: a run that is killed leaves nothing that could be served,
and the next one clears away what it left.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

from services import bundled_pages
from services.wiki_search.cutting import UnreadablePagesError, source_files, text_bytes, write_passages
from services.wiki_search.lucene_index import DEFAULT_HEAP_MB, LuceneBuildError, build_lucene_index
from services.wiki_search.manifest import (
    LUCENE_FOLDER,
    Manifest,
    Recipe,
    UnusableIndexError,
    read_manifest,
)
from services.wiki_search.passages import PASSAGE_WORDS
from toolformer.model_files.digests import file_digest, record

BUNDLED: Final = "bundled"

# Measured on a million generated passages (docs/performance.md), in bytes for each byte of the pages' file.
_DISK_WHILE_BUILDING: Final = 4.5
_DISK_OF_THE_INDEX: Final = 1.1
_CUTTING_MB: Final = 80
"""Memory of a process that cuts, in MiB."""

logger = logging.getLogger(__name__)


class IndexBuildError(Exception):
    """An index could not be built; the message names what is at fault and the remedy. Nothing is left behind."""


def ensure_index(
    index: Path,
    pages: str = BUNDLED,
    *,
    threads: int | None = None,
    heap_mb: int = DEFAULT_HEAP_MB,
) -> Manifest:
    """The manifest of an index of `pages` at `index`: the one that is there if its recipe matches, else a new one.

    Two processes that ask at once build it once. An older index is replaced; a folder that is no index is not touched.

    Args:
        index: the folder of the index.
        pages: a file of KILT JSON lines, also compressed by gzip; a folder of WikiExtractor's files; or `bundled` for
            the project's own encyclopedia.
        threads: processes that cut, then threads that index; by default one a core.
        heap_mb: heap of the indexing process in MiB.

    Raises:
        IndexBuildError: the pages cannot be read, are something else, the disk is too full, or Lucene fails.
        UnusableIndexError: `index` exists and is something else.
    """
    recipe = recipe_of(pages)
    index.parent.mkdir(parents=True, exist_ok=True)
    with bundled_pages.locked(index):
        if present := manifest_if_current(index, recipe):
            return present
        scratch_prefix = f".{index.name}.building-"
        for abandoned in index.parent.glob(f"{scratch_prefix}*"):  # the holder of the lock is the only builder
            shutil.rmtree(abandoned, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=scratch_prefix, dir=index.parent) as scratch:
            return _build(Path(scratch), index, recipe, pages, threads or os.cpu_count() or 1, heap_mb)


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
    """What an index of `pages` made by this code follows from; reads all of them once for their digest.

    Raises:
        IndexBuildError: they cannot be read.
    """
    try:
        digest = bundled_pages.fingerprint() if pages == BUNDLED else _digest(Path(pages))
    except OSError as error:
        wanted = f"a file of KILT pages, a folder of WikiExtractor's, or '{BUNDLED}'"
        raise IndexBuildError(f"--pages: {pages} cannot be read ({error.strerror}); give {wanted}") from error
    name = pages if pages == BUNDLED else Path(pages).name
    return Recipe(source=name, source_digest=digest, passage_words=PASSAGE_WORDS, pyserini=version("pyserini"))


def _digest(pages: Path) -> str:
    """A file's digest, or one of the names and digests of a folder's files."""
    if not pages.is_dir():
        return file_digest(pages)
    lines = (f"{file_digest(path)}  {path.relative_to(pages).as_posix()}\n" for path in source_files(pages))
    return sha256("".join(lines).encode()).hexdigest()


def _build(scratch: Path, index: Path, recipe: Recipe, pages: str, threads: int, heap_mb: int) -> Manifest:
    began = time.perf_counter()
    source = Path(pages)
    finished = scratch / "index"
    try:
        if pages == BUNDLED:
            source = scratch / "pages.jsonl"
            bundled_pages.write_pages(source)
        _require_room(source, scratch, threads, heap_mb)
        cut = write_passages(source, scratch / "passages", threads)
        build_lucene_index(scratch / "passages", finished / LUCENE_FOLDER, cut.passages, threads, heap_mb)
    except UnreadablePagesError as error:
        raise IndexBuildError(f"--pages: {error}") from error
    except (LuceneBuildError, RuntimeError, subprocess.TimeoutExpired) as error:
        raise IndexBuildError(str(error)) from error
    if cut.malformed:
        logger.warning("left out %d malformed lines, the first: %s", cut.malformed, "; ".join(cut.named))
    manifest = Manifest(
        recipe=recipe,
        pages=cut.pages,
        passages=cut.passages,
        malformed_lines=cut.malformed,
        build_seconds=round(time.perf_counter() - began, 2),
    )
    manifest.write(finished)
    record(finished)
    if index.exists():
        index.rename(scratch / "replaced")
    finished.rename(index)
    logger.info("indexed %d pages as %d passages in %.1f s: %s", cut.pages, cut.passages, manifest.build_seconds, index)
    return manifest


def _require_room(source: Path, scratch: Path, threads: int, heap_mb: int) -> None:
    """Says what the work will take, and refuses to begin what the disk cannot hold."""
    text = text_bytes(source)
    needed, free = round(_DISK_WHILE_BUILDING * text), shutil.disk_usage(scratch).free
    logger.info(
        "%s of pages; building takes about %s of disk in %s (%s is free), the index %s in the end, and %s of memory",
        *(_size(text), _size(needed), scratch.parent, _size(free), _size(round(_DISK_OF_THE_INDEX * text))),
        _size((heap_mb + _CUTTING_MB * (threads + 1)) << 20),
    )
    if free < needed:
        raise IndexBuildError(
            f"--index: building takes about {_size(needed)} of disk and {scratch.parent} has {_size(free)} free; "
            "make room, or give a folder on a larger disk"
        )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Builds the search index from pages of KILT or WikiExtractor; keeps the one that is there if it fits."""
    parser = argparse.ArgumentParser(prog="python -m services.wiki_search.index", description=main.__doc__)
    parser.add_argument(
        "--pages",
        default=BUNDLED,
        help="file of KILT JSON lines, also .gz; folder of WikiExtractor's files; or 'bundled' (the default)",
    )
    parser.add_argument("--index", type=Path, required=True, help="folder of the index")
    parser.add_argument("--threads", type=int, help="processes, then threads (default: one a core)")
    parser.add_argument("--heap-mb", type=int, default=DEFAULT_HEAP_MB, help="heap of the indexing process in MiB")
    bundled_pages.build_command(
        parser,
        "wiki_search",
        lambda options: ensure_index(options.index, options.pages, threads=options.threads, heap_mb=options.heap_mb),
        (IndexBuildError, UnusableIndexError),
        arguments,
    )


if __name__ == "__main__":
    main()
