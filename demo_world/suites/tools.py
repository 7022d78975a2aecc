"""Held-out questions with known answers: 100 a tool whose values were never trained on, and as many in phrasings
never trained on."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from demo_world.splits import stable_hash
from demo_world.texts import Text, calculator_text, calendar_text, fact_text, question_text, translation_text

Split = Literal["held-out values", "held-out phrasings"]

SPLITS: Final[tuple[Split, ...]] = ("held-out values", "held-out phrasings")
"""``held-out values``: numbers, dates, entities and foreign sentences are new, phrasings are known. ``held-out
phrasings``: both are new."""

QUESTIONS_PER_TOOL: Final = 100

_WRITERS: Final[dict[str, Callable[..., Text]]] = {
    "Calculator": calculator_text,
    "Calendar": calendar_text,
    "WikiSearch": fact_text,
    "QA": question_text,
    "MT": translation_text,
}

TOOLS: Final = tuple(_WRITERS)
"""The tools there are suites for, by their names in text."""


@dataclass(frozen=True, slots=True)
class ToolQuestion:
    """A prompt that ends where its answer begins.

    ``tool`` is the one that knows the ``answer``, ``input`` what the generator would ask it; ``date`` is the day
    that the prompt is written on, for the calendar.
    """

    prompt: str
    answer: str
    tool: str
    input: str
    date: datetime.date | None


def questions(tool: str, split: Split, *, count: int = QUESTIONS_PER_TOOL, seed: int = 0) -> tuple[ToolQuestion, ...]:
    """``count`` different questions for ``tool``; the same arguments give the same questions.

    Raises:
        ValueError: for a tool without a suite.
    """
    if tool not in _WRITERS:
        raise ValueError(f"tool {tool!r} has no suite; there are suites for {', '.join(TOOLS)}")
    rng = random.Random(stable_hash("suite", tool, split, str(seed)))
    found: dict[str, ToolQuestion] = {}
    while len(found) < count:
        text = _WRITERS[tool](rng, held_out_values=True, held_out_phrasing=split == "held-out phrasings")
        assert text.call is not None
        # Today's date is no part of a calendar's prompt, so the day makes such questions different.
        key = f"{text.prompt} {text.date}"
        found.setdefault(key, ToolQuestion(text.prompt, text.answer, tool, text.call.input, text.date))
    return tuple(found.values())
