"""Passages: what is retrieved and read. Pages in KILT's shape are cut into them; on disk they are JSON lines."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from services.pages import Item, cut_page

PASSAGES_FILE: Final = "passages.jsonl"
OFFSETS_FILE: Final = "passages.offsets.npy"


class MalformedPassageError(ValueError):
    """A record is not a passage; the message names the field and what it should hold."""


@dataclass(frozen=True, slots=True)
class PagePassage:
    """A stretch of one page. ``heading`` is the page's title, and after a colon its section where there is one."""

    id: str
    heading: str
    text: str

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> PagePassage:
        """The passage in a record of Atlas' passage files: ``id``, ``text``, and where given ``title``, ``section``.

        Raises:
            MalformedPassageError: a field is missing or no text.
        """
        title, section, text = record.get("title") or "", record.get("section") or "", record.get("text")
        if not isinstance(text, str) or not isinstance(title, str) or not isinstance(section, str):
            raise MalformedPassageError("'text', 'title' and 'section' must be texts, and 'text' must be given")
        if "id" not in record:
            raise MalformedPassageError("'id' is missing: give each passage a unique one")
        return cls(str(record["id"]), f"{title}: {section}" if section else title, text)

    def record(self) -> dict[str, str]:
        """The passage as a record that `of_record` reads."""
        return {"id": self.id, "title": self.heading, "text": self.text}


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found for a question, and its score: the retriever's dot product, or BM25."""

    passage: PagePassage
    score: float


def split_page(page: Mapping[str, Any], max_words: int) -> Iterator[PagePassage]:
    """The passages of a page of a KILT knowledge source, in order.

    Paragraphs and list items of one section are put together while they have at most ``max_words`` words; a longer
    paragraph stays whole. Wikipedia search cuts between sentences and keeps lists whole.

    Raises:
        MalformedPageError: see `cut_page`.
    """
    for cut in cut_page(page, max_words, _paragraphs):
        yield PagePassage(cut.id, f"{cut.title}: {cut.section}" if cut.section else cut.title, cut.text)


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    return (f"{line};" if isinstance(line, Item) else line for line in lines)


class PassageStore:
    """Passages in a folder by number. The file is mapped, not read: 28 million passages cost page cache, not memory."""

    def __init__(self, folder: Path) -> None:
        """Open what `write_passages` wrote.

        Raises:
            OSError: a file is missing or cannot be read.
            ValueError: the files do not belong together.
        """
        self._offsets = np.load(folder / OFFSETS_FILE, mmap_mode="r")
        with (folder / PASSAGES_FILE).open("rb") as source:
            size = source.seek(0, 2)
            if size != int(self._offsets[-1]):
                raise ValueError(f"{PASSAGES_FILE} has {size:,} bytes, {OFFSETS_FILE} says {int(self._offsets[-1]):,}")
            self._lines = mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ) if size else None

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, number: int) -> PagePassage:
        if self._lines is None or not 0 <= number < len(self):
            raise IndexError(f"there is no passage {number}; there are {len(self):,}")
        line = self._lines[int(self._offsets[number]) : int(self._offsets[number + 1])]
        return PagePassage.of_record(json.loads(line))

    def __iter__(self) -> Iterator[PagePassage]:
        return (self[number] for number in range(len(self)))

    def close(self) -> None:
        """Let go of the files."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def write_passages(folder: Path, passages: Iterable[PagePassage]) -> int:
    """Write ``passages`` into ``folder``, and at the end where each begins; how many there were."""
    offsets = [0]
    with (folder / PASSAGES_FILE).open("wb") as out:
        for passage in passages:
            line = json.dumps(passage.record(), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            out.write(line)
            offsets.append(offsets[-1] + len(line))
    np.save(folder / OFFSETS_FILE, np.asarray(offsets, dtype=np.int64))
    return len(offsets) - 1
