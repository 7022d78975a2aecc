"""A file of KILT pages, cut into passages by all cores.

The file is read in blocks of whole lines; each block becomes one file of passages, so that Lucene's threads have many
files to share, and no block waits for another.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import signal
import threading
import zlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Final

from services.pages import MalformedPageError
from services.wiki_search.lucene import indexed_document
from services.wiki_search.passages import split_page
from services.wiki_search.progress import Progress

MAX_LINE_BYTES: Final = 64 << 20
"""Longer than any page: what has no line break for so long is no file of JSON lines."""

MAX_MALFORMED_SHARE: Final = 0.01
"""A file of which more is malformed is not a damaged file of pages but another kind of file."""

BLOCK_BYTES: Final = 4 << 20
_GZIP_MAGIC: Final = b"\x1f\x8b"
_NAMED_LINES: Final = 5
"""Malformed lines that are named; the others are counted."""


class UnreadablePagesError(Exception):
    """A file cannot be read as KILT pages; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What became of a stretch of a file: pages, their passages, and lines that are no page."""

    pages: int = 0
    passages: int = 0
    malformed: int = 0
    named: tuple[str, ...] = ()
    """The first malformed lines: number and fault."""

    def __add__(self, other: Cut) -> Cut:
        return Cut(
            self.pages + other.pages,
            self.passages + other.passages,
            self.malformed + other.malformed,
            (self.named + other.named)[:_NAMED_LINES],
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole lines of a file: the number of the first, and the bytes of the file that they end at."""

    number: int
    first_line: int
    lines: bytes
    end: int


def text_bytes(source: Path) -> int:
    """Bytes of the pages in ``source``; of a compressed file an estimate by its beginning.

    Raises:
        OSError: it cannot be read.
        UnreadablePagesError: it is compressed, and torn.
    """
    size = source.stat().st_size
    first = next(_blocks(source), None)
    return round(size * len(first.lines) / max(1, min(first.end, size))) if first else 0


def write_passages(source: Path, folder: Path, threads: int) -> Cut:
    """Writes the passages of the pages in ``source`` into files in the new ``folder``, as Anserini reads them.

    Lines that are no KILT page are left out and counted.

    Args:
        source: JSON lines, one page each; may be compressed by gzip, whatever its name.
        folder: to be made.
        threads: processes that cut; with 1 it happens in this one.

    Raises:
        UnreadablePagesError: too many lines are malformed, the file is torn, or it has no text.
    """
    folder.mkdir()
    size = source.stat().st_size
    progress = Progress("cutting pages into passages", "pages")
    total = Cut()
    for end, cut in _cut_all(source, folder, threads):
        total += cut
        _require_pages(source, total)
        progress.report(min(1.0, end / max(1, size)), total.pages)
    if not total.passages:
        raise UnreadablePagesError(f"{source.name} holds no text; give KILT pages, one JSON object a line")
    return total


def _require_pages(source: Path, total: Cut) -> None:
    lines = total.pages + total.malformed
    if total.malformed > MAX_MALFORMED_SHARE * lines:
        raise UnreadablePagesError(
            f"{source.name} is not a file of KILT pages: {total.malformed:,} of the first {lines:,} lines read "
            f"are none; {'; '.join(total.named)}"
        )


def _blocks(source: Path) -> Iterator[_Block]:
    """The file in blocks of whole lines."""
    with source.open("rb") as file:
        compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if compressed else file
        number, line = 0, 1
        try:
            while lines := stream.read(BLOCK_BYTES):
                lines += stream.readline(MAX_LINE_BYTES)
                if len(lines) > MAX_LINE_BYTES and not lines.endswith(b"\n"):
                    raise UnreadablePagesError(f"{source.name} is not a file of KILT pages: it has no line breaks")
                yield _Block(number, line, lines, file.tell())
                number, line = number + 1, line + lines.count(b"\n")
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise UnreadablePagesError(
                f"{source.name} is torn after line {line - 1:,} ({error}); copy it again"
            ) from error


def _cut_all(source: Path, folder: Path, threads: int) -> Iterator[tuple[int, Cut]]:
    """What became of each block and where it ends, in the file's order, so that a complaint names its first lines."""
    if threads == 1:
        for block in _blocks(source):
            yield block.end, _cut_block(block, folder)
        return
    with ProcessPoolExecutor(threads, multiprocessing.get_context("spawn"), _follow_the_parent) as pool:
        begun: deque[tuple[int, Future[Cut]]] = deque()
        try:
            for block in _blocks(source):
                begun.append((block.end, pool.submit(_cut_block, block, folder)))
                if len(begun) > 2 * threads:  # or the whole file would be read into memory
                    yield _oldest(begun)
            while begun:
                yield _oldest(begun)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _oldest(begun: deque[tuple[int, Future[Cut]]]) -> tuple[int, Cut]:
    end, future = begun.popleft()
    return end, future.result()


def _cut_block(block: _Block, folder: Path) -> Cut:
    pages = passages = malformed = 0
    named: list[str] = []
    with (folder / f"{block.number:06d}.jsonl").open("w", encoding="utf-8", errors="replace") as out:
        for number, line in enumerate(block.lines.split(b"\n"), start=block.first_line):
            if not line.strip():
                continue
            try:
                documents = [indexed_document(passage) for passage in split_page(_record(line))]
            except (ValueError, RecursionError) as error:  # what is no JSON, no UTF-8 or no KILT page
                malformed += 1
                named.append(f"line {number:,}: {error}")
                continue
            out.writelines(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
            pages, passages = pages + 1, passages + len(documents)
    return Cut(pages, passages, malformed, tuple(named[:_NAMED_LINES]))


def _record(line: bytes) -> dict[str, object]:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise MalformedPageError("it is not a JSON object: write one page a line")
    return record


def _follow_the_parent() -> None:
    """In a worker: end with the process that started it, however that ends; Ctrl-C is that process's to answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    threading.Thread(target=follow, name="follow the parent", daemon=True).start()
