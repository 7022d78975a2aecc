"""A file of KILT pages, or a folder that WikiExtractor wrote, cut into passages by all cores.

It is read in blocks of whole pages; each block becomes one file of passages, so that Lucene's threads have many files
to share, and no block waits for another.
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
from io import BufferedIOBase
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Final

from services.pages import MalformedPageError
from services.wiki_search.extracted import PAGE_END, extracted_files, kilt_record, page_elements
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
    """A file or folder cannot be read as pages; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What became of a stretch of the pages: how many, their passages, and lines or elements that are no page."""

    pages: int = 0
    passages: int = 0
    malformed: int = 0
    named: tuple[str, ...] = ()
    """The first malformed ones: place and fault."""

    def __add__(self, other: Cut) -> Cut:
        return Cut(
            self.pages + other.pages,
            self.passages + other.passages,
            self.malformed + other.malformed,
            (self.named + other.named)[:_NAMED_LINES],
        )


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole pages: the block's number, its bytes, and the bytes of the source that it ends at.

    Args:
        first_line: the number of its first line in the file.
        extracted: the file of WikiExtractor that it is from; None where each line is a page.
    """

    number: int
    first_line: int
    lines: bytes
    end: int
    extracted: str | None

    def pages(self) -> Iterator[tuple[str, bytes]]:
        """Each page as it is written, after words that name its place."""
        if self.extracted is not None:
            for number, element in enumerate(page_elements(self.lines), start=1):
                yield f"page {number} after line {self.first_line - 1:,} of {self.extracted}", element
            return
        for number, line in enumerate(self.lines.split(b"\n"), start=self.first_line):
            if line.strip():
                yield f"line {number:,}", line

    def record(self, page: bytes) -> dict[str, Any]:
        """One of the `pages` as a record of a KILT knowledge source.

        Raises:
            ValueError: it is no page.
            RecursionError: it is JSON too deep to read.
        """
        return kilt_record(page) if self.extracted is not None else _json_record(page)


def source_files(source: Path) -> list[Path]:
    """The files that the pages of `source` are in: itself, or where it is a folder, those that WikiExtractor wrote."""
    return extracted_files(source) if source.is_dir() else [source]


def text_bytes(source: Path) -> int:
    """Bytes of the pages in `source`; of a compressed file an estimate by its beginning.

    Raises:
        OSError: it cannot be read.
        UnreadablePagesError: it is compressed, and torn.
    """
    size = _size(source)
    first = next(_blocks(source), None)
    return round(size * len(first.lines) / max(1, min(first.end, size))) if first else 0


def write_passages(source: Path, folder: Path, threads: int) -> Cut:
    """Writes the passages of the pages in ``source`` into files in the new ``folder``, as Anserini reads them.

    What is no page is left out and counted.

    Args:
        source: JSON lines, one KILT page each, which may be compressed by gzip, whatever the file's name; or a folder
            of WikiExtractor's files.
        folder: to be made.
        threads: processes that cut; with 1 it happens in this one.

    Raises:
        UnreadablePagesError: too many pages are malformed, a file is torn, or there is no text.
    """
    folder.mkdir()
    size = _size(source)
    progress = Progress("cutting pages into passages", "pages")
    total = Cut()
    for end, cut in _cut_all(source, folder, threads):
        total += cut
        _require_pages(source, total)
        progress.report(min(1.0, end / max(1, size)), total.pages)
    if not total.passages:
        wanted = "WikiExtractor's files, wiki_00, ..." if source.is_dir() else "KILT pages, one JSON object a line"
        raise UnreadablePagesError(f"{source.name} holds no text; give {wanted}")
    return total


def _size(source: Path) -> int:
    return sum(path.stat().st_size for path in source_files(source))


def _require_pages(source: Path, total: Cut) -> None:
    every = total.pages + total.malformed
    if total.malformed > MAX_MALFORMED_SHARE * every:
        kind, unit = ("folder of WikiExtractor's", "page") if source.is_dir() else ("file of KILT pages", "line")
        raise UnreadablePagesError(
            f"{source.name} is not a {kind}: {total.malformed:,} of the first {every:,} {unit}s read "
            f"are none; {'; '.join(total.named)}"
        )


def _blocks(source: Path) -> Iterator[_Block]:
    """All pages in blocks, numbered over all files."""
    number = before = 0
    for path in source_files(source):
        with path.open("rb") as file:
            name = path.relative_to(source).as_posix() if source.is_dir() else None
            for line, lines in _parts_of(path, file, b"" if name is None else PAGE_END):
                yield _Block(number, line, lines, before + file.tell(), name)
                number += 1
            before += file.tell()


def _parts_of(path: Path, file: BufferedIOBase, last_line: bytes) -> Iterator[tuple[int, bytes]]:
    """A file in parts, each ending with a line that begins with `last_line`, and the number of its first line."""
    compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    file.seek(0)
    stream: BufferedIOBase = gzip.GzipFile(fileobj=file) if compressed else file
    line = 1
    try:
        while lines := stream.read(BLOCK_BYTES):
            lines += _rest_of_page(stream, last_line)
            if len(lines) > MAX_LINE_BYTES and not lines.endswith(b"\n"):
                raise UnreadablePagesError(f"{path.name} is not a file of KILT pages: it has no line breaks")
            yield line, lines
            line += lines.count(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UnreadablePagesError(f"{path.name} is torn after line {line - 1:,} ({error}); copy it again") from error


def _rest_of_page(stream: BufferedIOBase, last_line: bytes) -> bytes:
    rest, size = list[bytes](), 0
    while size < MAX_LINE_BYTES and (line := stream.readline(MAX_LINE_BYTES)):
        rest.append(line)
        size += len(line)
        if line.startswith(last_line):
            break
    return b"".join(rest)


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
        for place, page in block.pages():
            try:
                documents = [indexed_document(passage) for passage in split_page(block.record(page))]
            except (ValueError, RecursionError) as error:  # what is no JSON, no UTF-8 or no page
                malformed += 1
                named.append(f"{place}: {error}")
                continue
            out.writelines(json.dumps(document, ensure_ascii=False) + "\n" for document in documents)
            pages, passages = pages + 1, passages + len(documents)
    return Cut(pages, passages, malformed, tuple(named[:_NAMED_LINES]))


def _json_record(line: bytes) -> dict[str, Any]:
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
