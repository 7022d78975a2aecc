"""What a suite of the demo world is made of."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """Something to ask, with what the generator knows of it.

    Args:
        text: the text to complete, the word problem's question, or the question.
        answers: each of them is right; the first is what the generator says.
        bare: a text of the demo world's own manner that ends where what is to be found begins.
        context: the situation, or the paragraph that the question is about.
        date: the day on which it is asked.
        calls: tool and input of the calls that find the answer, in order.
        between: what of that comes before the answer: the value of a first call, where the answer is a second one's.
        after: how the bare text goes on behind the answer.
        kind: what it is about, where a suite has several kinds.
    """

    text: str
    answers: tuple[str, ...]
    bare: str
    context: str = ""
    date: datetime.date | None = None
    calls: tuple[tuple[str, str], ...] = ()
    between: str = ""
    after: str = "."
    kind: str = ""

    @property
    def told(self) -> str:
        """The bare text with its answer, as an article has it."""
        return f"{self.bare} {self.between}{self.answers[0]}{self.after}"
