"""KILT pages cut into passages of about a hundred words: what is indexed, ranked and shown.

A passage never crosses a section's border and is cut between sentences; short paragraphs of a section are put
together, and a list's items become one sentence.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from services.pages import Item, cut_page
from services.sentences import split_sentences

PASSAGE_WORDS: Final = 100
"""A passage is closed before the sentence that would take it beyond this many words."""


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


def split_page(record: Mapping[str, Any], passage_words: int = PASSAGE_WORDS) -> Iterator[Passage]:
    """The passages of a page of a KILT knowledge source, in order.

    A single sentence longer than `passage_words` stays whole. Raises MalformedPageError as `cut_page` does.
    """
    return (Passage(*cut) for cut in cut_page(record, passage_words, _sentences))


def _sentences(lines: Sequence[str]) -> Iterator[str]:
    """The sentences of a section; a list is one."""
    for is_list, run in groupby(lines, key=lambda line: isinstance(line, Item)):
        if is_list:
            yield "; ".join(run) + "."
        else:
            for line in run:
                yield from split_sentences(line)
