"""What a suite is made of: examples with known answers, and the two forms in which a model is asked."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Literal

Prompts = Literal["paper", "bare"]
"""``paper``: the zero-shot prompts of the paper's appendix C. ``bare``: the text to be gone on with and no instruction,
for a small model that has never read one."""


class SuiteError(ValueError):
    """A suite is not available. The message is one line: file, place, field, what is wrong, what to do."""


@dataclass(frozen=True, slots=True)
class Example:
    """One thing to ask.

    Args:
        id: unique within the suite, the same every time.
        text: what is completed, or the word problem's or the question's own words.
        answers: each of them is right; never empty.
        context: the paragraph or the situation that the question is about.
        bare: the whole prompt without instructions; empty where the suite has no such form.
        date: the day that tools take for today.
        split: which part of the suite it belongs to, where there are several.
        calls: tool and input of the calls that the generator would make, in order; empty where nobody knows.
        tools: a call of any of these is as expected, where it is empty no call is; ``None`` where nothing is expected.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    context: str = ""
    bare: str = ""
    date: dt.date | None = None
    split: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    tools: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.answers or not all(answer.strip() for answer in self.answers):
            raise SuiteError(f"example {self.id}: answers: must hold at least one, none of them empty")


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """The examples of a suite, and how many of its file's were ``left_out``, by reason."""

    examples: tuple[Example, ...]
    left_out: dict[str, int]
