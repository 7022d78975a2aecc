"""KILT pages cut into passages of about a hundred words: what is indexed, ranked and shown.

A passage never crosses a section's border and is cut between sentences; short paragraphs of a section are put
together, and a list's items become one sentence.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from services.wiki_search.sentences import split_sentences

PASSAGE_WORDS: Final = 100
"""A passage is closed before the sentence that would take it beyond this many words."""

_SECTION: Final = "Section::::"
_BULLET: Final = re.compile(r"BULLET::::(?:-|\d+\.)?\s*")


class MalformedPageError(ValueError):
    """A record is not a KILT page; the message names the field and what it should hold."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of one page. `id` is the page's id and the passage's number, `12-0`; `section` may be empty."""

    id: str
    title: str
    section: str
    text: str

    @property
    def number(self) -> int:
        """The passage's place on its page, from 0."""
        return int(self.id.rpartition("-")[2])

    @property
    def shown(self) -> str:
        """The passage as readers see it: `Title > Section > text`."""
        return " > ".join(part for part in (self.title, self.section, self.text) if part)


def split_page(record: Mapping[str, Any], passage_words: int = PASSAGE_WORDS) -> Iterator[Passage]:
    """The passages of a page of a KILT knowledge source, in order.

    Reads the record's `wikipedia_id`, `wikipedia_title` and `text`. A single sentence longer than `passage_words`
    stays whole. Raises MalformedPageError for a missing or wrongly typed field.
    """
    page_id, title, lines = _fields(record)
    number = 0
    for section, sentences in _sections(title, lines):
        for words in _packed(sentences, passage_words):
            yield Passage(f"{page_id}-{number}", title, section, words)
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
    """Each section's heading path and sentences; the first line is left out where it is only the title."""
    section, sentences, items = "", list[str](), list[str]()

    def close_list() -> None:
        if items:
            sentences.append("; ".join(items) + ".")
            items.clear()

    for number, raw in enumerate(lines):
        line = _one_line(raw)
        if not line or (number == 0 and line == title):
            continue
        if bullet := _BULLET.match(line):
            if item := line[bullet.end() :].rstrip(".;,"):
                items.append(item)
            continue
        close_list()
        if line.startswith(_SECTION):
            yield section, sentences
            section, sentences = _heading(line), []
        else:
            sentences.extend(split_sentences(line))
    close_list()
    yield section, sentences


def _heading(line: str) -> str:
    """`Section::::History:Early years.` as `History > Early years`."""
    return " > ".join(part.strip() for part in line.removeprefix(_SECTION).rstrip(".").split(":") if part.strip())


def _packed(sentences: list[str], limit: int) -> Iterator[str]:
    """Sentences joined until the next one would take them beyond `limit` words."""
    kept, words = list[str](), 0
    for sentence in sentences:
        length = len(sentence.split())
        if kept and words + length > limit:
            yield " ".join(kept)
            kept, words = [], 0
        kept.append(sentence)
        words += length
    if kept:
        yield " ".join(kept)


def _one_line(text: str) -> str:
    return " ".join(text.split())
