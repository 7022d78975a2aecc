"""What a generated text is: plain strings with call slots between them, and the answer the generator knows."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallSlot:
    """A tool call that stands right before the words it helps to predict.

    ``tool`` is the tool's name in text (``Calculator``), ``input`` what stands between the parentheses (without the
    quotation marks of tools that quote their input).
    """

    tool: str
    input: str


Segment = str | CallSlot


@dataclass(frozen=True, slots=True)
class Text:
    """One short text.

    ``segments`` in reading order. ``answer`` is what the text says right after its call and what the tool's output
    must contain; empty where the text has no call. ``phrasing`` names the pattern it came from (the unit in which
    phrasings are held out). ``date`` is the day the text was written on, for the calendar.
    """

    segments: tuple[Segment, ...]
    answer: str = ""
    phrasing: str = ""
    date: datetime.date | None = None

    @property
    def call(self) -> CallSlot | None:
        """The text's call, or ``None``."""
        return next((segment for segment in self.segments if isinstance(segment, CallSlot)), None)

    @property
    def plain(self) -> str:
        """The text as a reader sees it, without the call."""
        return "".join(segment for segment in self.segments if isinstance(segment, str))

    @property
    def prompt(self) -> str:
        """What stands before the call: the prompt whose completion needs the tool. The whole text where there is no
        call."""
        words: list[str] = []
        for segment in self.segments:
            if isinstance(segment, CallSlot):
                break
            words.append(segment)
        return "".join(words)

    def without_call(self) -> Text:
        """The same text with its call left out, as a reader would have written it."""
        return Text((self.plain,), "", self.phrasing, self.date)
