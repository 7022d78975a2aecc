"""KILT pages cut into passages: their sections, and texts packed up to a number of words.

What may not be cut apart is each service's own choice: `units` turns a section's lines into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

_SECTION: Final = "Section::::"
_BULLET: Final = re.compile(r"BULLET::::(?:-|\d+\.)?\s*")


class MalformedPageError(ValueError):
    """A record is not a KILT page; the message names the field and what it should hold."""


class Item(str):
    """A line that is an item of a list, without its mark and closing sign."""

    __slots__ = ()


class PageCut(NamedTuple):
    """A stretch of one page. `id` is the page's id and the stretch's number, `12-0`; `section` may be empty."""

    id: str
    title: str
    section: str
    text: str


def cut_page(
    record: Mapping[str, Any], words: int, units: Callable[[Sequence[str]], Iterable[str]]
) -> Iterator[PageCut]:
    """The passages of a page of a KILT knowledge source, in order; none crosses a section's border.

    Args:
        record: its `wikipedia_id`, `wikipedia_title` and `text` are read.
        words: a passage is closed before the unit that would take it beyond them; a longer unit stays whole.
        units: what a section's lines consist of; an `Item` is one of a list.

    Raises:
        MalformedPageError: a field is missing or wrongly typed.
    """
    page_id, title, lines = _fields(record)
    number = 0
    for section, of_section in _sections(title, lines):
        for text in _packed(units(of_section), words):
            yield PageCut(f"{page_id}-{number}", title, section, text)
            number += 1


def _fields(record: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    page_id, title, lines = (record.get(name) for name in ("wikipedia_id", "wikipedia_title", "text"))
    if not isinstance(page_id, str) or not page_id.strip():
        raise MalformedPageError("wikipedia_id is missing or not a text: give the page's id as a string")
    if not isinstance(title, str) or not title.strip():
        raise MalformedPageError(f"wikipedia_title of page {page_id} is missing or empty: give the page's title")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise MalformedPageError(f"text of page {page_id} is not a list of texts: give one string a paragraph")
    return page_id.strip(), _one_line(title), lines


def _sections(title: str, lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each section's heading path and lines; the first line is left out where it is only the title."""
    section, of_section = "", list[str]()
    for number, raw in enumerate(lines):
        line = _one_line(raw)
        if not line or (number == 0 and line == title):
            continue
        if bullet := _BULLET.match(line):
            if item := line[bullet.end() :].rstrip(".;,"):
                of_section.append(Item(item))
        elif line.startswith(_SECTION):
            yield section, of_section
            parts = line.removeprefix(_SECTION).rstrip(".").split(":")
            section, of_section = " > ".join(part.strip() for part in parts if part.strip()), []
        else:
            of_section.append(line)
    yield section, of_section


def _packed(units: Iterable[str], limit: int) -> Iterator[str]:
    """Units joined until the next one would take them beyond `limit` words."""
    packed, words = list[str](), 0
    for unit in units:
        length = len(unit.split())
        if packed and words + length > limit:
            yield " ".join(packed)
            packed, words = [], 0
        packed.append(unit)
        words += length
    if packed:
        yield " ".join(packed)


def _one_line(text: str) -> str:
    return " ".join(text.split())
