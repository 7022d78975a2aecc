"""What the base model reads, before any ids: rows of parts.

``plain``: an article. ``heading``: a text under a line that says one of its facts, often in the form of a call with its
result, now and then of another text's call or of one without result. ``prompt``: the form of a tool's prompt, a text
and the same text with calls. Of these half are where they belong, the others anywhere, and each asks what its text
truly needs; or, on request, place and input of each are random, and no heading is a call.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from demo_world.articles import FAMILIES, Truth, article, prose
from demo_world.splits import stable_hash
from toolformer.tools import Tool
from training_jobs.corpora.base.random_calls import Placed, random_calls

Calls = Literal["half", "random"]
"""``half``: the calls that help each text, half of them where they belong, and headings that are true calls with
results. ``random``: nothing but the calls' form; no heading is a call."""
Prose = Callable[[random.Random, str | None], tuple[str, tuple[Truth, ...], datetime.date | None]]
"""Draws a text: it, the calls that help in it, and the day it names. The name is of a tool that it should be about more
often than others are."""
KINDS: Final = {"plain": 38, "heading": 30, "prompt": 32}
"""Kinds of rows, in percent. Prompt-form rows are several times as long as the others."""
MISPLACED_SHARE: Final = 0.5
"""Of the calls in prompt-form texts so many are at a random position."""

_FULL_PROMPT_SHARE: Final = 0.15
"""The rest have the task and the text alone: the whole prompt is the same hundreds of tokens every time."""
_EXAMPLES: Final = ((1, 2, 3), (6, 3, 1))
_BETWEEN: Final = "\n\n"
_EMPHASIS: Final = 3
"""Texts in a prompt's form are so many times as often about what the tool knows."""
_KNOWN_BY: Final[Mapping[str, str]] = {
    "Calculator": "numbers", "Calendar": "date", "WikiSearch": "fact", "QA": "fact", "MT": "foreign",
}  # fmt: skip
_HEADINGS: Final = {"result": 55, "line": 25, "empty": 10, "other": 10}
_LINES: Final = (
    "{asked}: {answer}\n",
    "{answer}\n",
    "{answer}. ",
    "{asked} = {answer}. ",
    "Note: {answer}.\n",
    "({answer}) ",
)
_ANSWERS: Final = tuple(line for line in _LINES if "{asked}" not in line)


@dataclass(frozen=True, slots=True)
class Shown:
    """A text, with ``calls`` in it. Where ``learned`` is false it is context that the loss leaves out."""

    text: str
    calls: tuple[Placed, ...] = ()
    learned: bool = True


@dataclass(frozen=True, slots=True)
class Heading:
    """A call as a heading: with what the tool says to it (on ``date``), where ``answer`` is given and the tool's output
    holds it; else without result."""

    tool: str
    input: str
    answer: str | None
    date: str | None = None


Part = Shown | Heading


@dataclass(frozen=True, slots=True)
class CorpusText:
    """One text of the training corpus, its parts in reading order."""

    kind: str
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, text: str) -> CorpusText:
        """A text alone, all of it learned."""
        return cls("plain", (Shown(text),))

    @property
    def alone(self) -> str | None:
        """The text, if there is nothing but one and no call."""
        match self.parts:
            case (Shown(text, (), True),):
                return text
        return None


def rows(count: int, tools: Sequence[Tool], *, seed: int, calls: Calls = "half") -> Iterator[CorpusText]:
    """The first ``count`` rows of ``seed``. Each depends on the seed, its number, ``calls`` and the tools alone."""
    for number in range(count):
        rng = random.Random(stable_hash("base", str(seed), str(number)))
        kind = rng.choices(tuple(KINDS), weights=tuple(KINDS.values()))[0]
        if kind == "plain":
            yield CorpusText.of(article(number, seed=seed).text)
        elif kind == "heading":
            yield under_heading(rng, generated) if calls == "half" else _under_line(rng)
        else:
            yield prompt_form(rng, rng.choice(tools), calls, generated)


def generated(rng: random.Random, tool: str | None) -> tuple[str, tuple[Truth, ...], datetime.date | None]:
    """Prose of the generated world."""
    families = dict(FAMILIES)
    if tool is not None and tool in _KNOWN_BY:
        families[_KNOWN_BY[tool]] *= _EMPHASIS
    return prose(rng, families)


def _under_line(rng: random.Random) -> CorpusText:
    """A text under what one of its facts says, and, as often as other headings do not help, one of another text's."""
    text, truths, _ = _text_with_truth(rng, generated)
    if rng.random() < (_HEADINGS["empty"] + _HEADINGS["other"]) / sum(_HEADINGS.values()):
        _, truths, _ = _text_with_truth(rng, generated)
    line = rng.choice(_ANSWERS).format(answer=rng.choice(truths).answer)
    return CorpusText("heading", (Shown(line, learned=False), Shown(text)))


def under_heading(rng: random.Random, draw: Prose) -> CorpusText:
    """A text under a call of its own with its result; now and then under a plain line, a call without result, or
    another text's call."""
    shape = rng.choices(tuple(_HEADINGS), weights=tuple(_HEADINGS.values()))[0]
    text, truths, date = _text_with_truth(rng, draw)
    known = rng.choice(truths)
    day = date.isoformat() if date else None
    if shape == "line":
        # A calendar is asked nothing, so its line is the answer alone.
        line = rng.choice(_LINES if known.input else _LINES[1:3]).format(asked=known.input, answer=known.answer)
        return CorpusText("heading", (Shown(line, learned=False), Shown(text)))
    if shape == "empty":
        heading = Heading(known.tool, known.input, None)
    elif shape == "other":
        _, others, date = _text_with_truth(rng, draw)
        known = rng.choice(others)
        heading = Heading(known.tool, known.input, known.result or known.answer, date.isoformat() if date else None)
    else:
        heading = Heading(known.tool, known.input, known.result or known.answer, day)
    between = (Shown(rng.choice((" ", "\n")), learned=False),) if rng.random() < 0.2 else ()
    return CorpusText("heading", (heading, *between, Shown(text)))


def _text_with_truth(rng: random.Random, draw: Prose) -> tuple[str, tuple[Truth, ...], datetime.date | None]:
    while True:
        text, truths, date = draw(rng, None)
        if truths:
            return text, truths, date


def prompt_form(rng: random.Random, tool: Tool, calls: Calls, draw: Prose) -> CorpusText:
    """One to three texts as a tool's prompt shows them: each plain, then with calls of the tool."""
    full = rng.random() < _FULL_PROMPT_SHARE
    head = tool.prompt_for("").removesuffix("Input: \nOutput:") if full else f"{tool.task}\n\n"
    parts: list[Part] = [Shown(head, learned=False)]
    sizes, weights = _EXAMPLES
    for number in range(rng.choices(sizes, weights=weights)[0]):
        text, truths, _ = draw(rng, tool.name)
        if calls == "random":
            _, others, _ = draw(rng, tool.name)
            placed = random_calls(rng, text, [truth for truth in others if truth.tool == tool.name])
        else:
            placed = tuple(_placed(rng, truth) for truth in truths if truth.tool == tool.name)
        gap = rng.choice((" ", ""))  # whether a text begins with the space before it is the reader's choice
        parts.append(Shown(f"{_BETWEEN if number else ''}Input: ", learned=False))
        parts += [Shown(text), Shown(f"\nOutput:{gap}", learned=False), Shown(text, placed)]
    return CorpusText("prompt", tuple(parts))


def _placed(rng: random.Random, truth: Truth) -> Placed:
    misplaced = rng.random() < MISPLACED_SHARE
    return Placed(truth.tool, truth.input, None if misplaced else truth.offset, rng.random())
