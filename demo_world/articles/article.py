"""What an article is: a text with an address and a day, and the calls that would help to write it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from demo_world.texts.text import Text


@dataclass(frozen=True, slots=True)
class Truth:
    """A call that helps: ``tool`` asked ``input`` right before character ``offset`` of the text gives the ``answer``
    that stands there, a space after it; where the tool says more than that, ``result`` is what it says."""

    tool: str
    offset: int
    input: str
    answer: str
    result: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A few sentences of an article.

    ``text`` has one call slot at most; ``inputs`` are what each tool that knows the answer would be asked there (a fact
    can be asked for and searched for). ``after`` goes on, often by saying the answer once more.
    """

    text: Text
    inputs: tuple[tuple[str, str], ...] = ()
    after: str = ""

    @property
    def plain(self) -> str:
        """The sentences as a reader sees them."""
        return f"{self.text.plain} {self.after}" if self.after else self.text.plain

    def closed(self) -> Piece:
        """The piece with a full stop at its end, so that another sentence can follow."""
        *before, last = self.text.segments
        if self.after or not isinstance(last, str) or last.endswith((".", "!", "?", '"')):
            return self
        return replace(self, text=replace(self.text, segments=(*before, f"{last}.")))

    def followed_by(self, after: str) -> Piece:
        """The piece with one more sentence."""
        return replace(self.closed(), after=after)

    def truths(self, start: int = 0) -> tuple[Truth, ...]:
        """The calls that help, where the piece begins at character ``start``."""
        at = start + len(self.text.prompt)
        return tuple(Truth(tool, at, asked, self.text.answer) for tool, asked in self.inputs)


@dataclass(frozen=True, slots=True)
class Article:
    """A page as a crawl finds it.

    ``number`` is its place in the corpus; ``date`` the day it was written, which its ``url`` may name; ``truths`` in
    reading order.
    """

    number: int
    url: str
    date: datetime.date
    title: str
    text: str
    truths: tuple[Truth, ...]


class Passage(Protocol):
    """A part of a text that knows the calls that help in it."""

    @property
    def plain(self) -> str:
        """The text as a reader sees it."""

    def truths(self, start: int = 0) -> tuple[Truth, ...]:
        """The calls that help, where it begins at character ``start``."""


def join(pieces: Sequence[Passage], separators: Sequence[str]) -> tuple[str, tuple[Truth, ...]]:
    """The text of ``pieces`` with ``separators`` between them, and the calls that help in it."""
    text = ""
    truths: list[Truth] = []
    for piece, separator in zip(pieces, ("", *separators), strict=True):
        text += separator
        truths += piece.truths(len(text))
        text += piece.plain
    return text, tuple(truths)
