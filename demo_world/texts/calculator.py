"""Texts that need a calculator: one or two operations on numbers that stand in the text."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Final, Literal

from demo_world.splits import on_side
from demo_world.tables import read
from demo_world.texts.numbers import NUMBER, draw_number, number_is_held_out, rounded, value_of
from demo_world.texts.patterns import REGISTERS, Known, Phrasing, Slots, compose, render, surround
from demo_world.texts.text import CallSlot, Text

TOOL: Final = "Calculator"

_NUMBER_SLOT: Final = re.compile(r"\{([abcpqxy])\}")
_DIRECT_SHARE: Final = 0.3
_LARGEST_VALUE: Final = 10_000_000
_SMALLEST_VALUE: Final = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is to be calculated: the expression over number slots, and how ``{a}`` and ``{b}`` belong together.

    ``multiple`` stands for an ``{a}`` that ``{b}`` divides (things that cannot be cut), ``part`` for an ``{a}`` smaller
    than ``{b}``.
    """

    expression: str
    operands: Literal["any", "multiple", "part"] = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene(Problem):
    """A situation that asks for one number.

    ``situation`` and ``question`` are whole sentences (the situation without its full stop); ``conclusion`` is a clause
    in lower case with the call's bar before the answer.
    """

    situation: str
    question: str
    conclusion: str


@dataclass(frozen=True, slots=True)
class _CalculatorTable:
    preludes: tuple[str, ...]
    tails: tuple[str, ...]
    direct: tuple[tuple[str, str], ...]
    scenes: tuple[Scene, ...]


_TABLE: Final = read("calculator", _CalculatorTable)
SCENES: Final = _TABLE.scenes
"""Situations, worded in every register."""
DIRECT: Final = _TABLE.direct
"""Plain arithmetic: expression and whole pattern."""


@cache
def scenes(*, held_out: bool) -> tuple[Scene, ...]:
    """The situations on one side of the split; a situation is held out in all its registers."""
    return on_side("phrasing", SCENES, held_out=held_out, key=lambda scene: scene.situation)


@cache
def scene_phrasings(*, held_out: bool) -> tuple[Phrasing[Problem], ...]:
    """The same situations, worded in every register."""
    found: list[Phrasing[Problem]] = []
    for scene in scenes(held_out=held_out):
        parts = {"situation": scene.situation, "question": scene.question, "conclusion": scene.conclusion}
        patterns = tuple(compose(register, parts) for register in REGISTERS.scene)
        found.append(Phrasing(scene.situation, scene, patterns))
    return tuple(found)


@cache
def direct_phrasings(*, held_out: bool) -> tuple[Phrasing[Problem], ...]:
    """The patterns of plain arithmetic on one side of the split."""
    direct = on_side("phrasing", DIRECT, held_out=held_out, key=lambda row: row[1])
    return tuple(Phrasing(pattern, Problem(expression), (pattern,)) for expression, pattern in direct)


def calculator_text(rng: random.Random, *, held_out_values: bool = False, held_out_phrasing: bool = False) -> Text:
    """A text with one calculator call, its operands and its phrasing from the wanted sides of the split.

    Where the operands are trainable, so are the answer and every other number in the text.
    """
    while True:
        family = direct_phrasings if rng.random() < _DIRECT_SHARE else scene_phrasings
        phrasing = rng.choice(family(held_out=held_out_phrasing))
        pattern = surround(rng, rng.choice(phrasing.patterns), _TABLE.preludes, _TABLE.tails)
        numbers, value = draw_operands(rng, phrasing.subject, held_out=held_out_values)
        call = CallSlot(TOOL, phrasing.subject.expression.format_map(numbers))
        slots = Slots(rng, numbers | {"d": draw_number(rng, "d", held_out=held_out_values)})
        text = render(pattern, slots, Known(call, rounded(value)), phrasing.key)
        if held_out_values or not any(map(number_is_held_out, NUMBER.findall(text.plain))):
            return text


def draw_operands(rng: random.Random, problem: Problem, *, held_out: bool) -> tuple[dict[str, str], Fraction]:
    """Numbers for the problem's slots and the exact value they give: at least 0.01 and of at most seven digits."""
    slots = sorted(set(_NUMBER_SLOT.findall(problem.expression)))
    while True:
        numbers = {slot: draw_number(rng, slot, held_out=held_out) for slot in slots}
        if problem.operands == "multiple":
            multiple = str(int(numbers["a"]) * int(numbers["b"]))
            if len(multiple) > 4 or number_is_held_out(multiple) is not held_out:
                continue
            numbers["a"] = multiple
        elif problem.operands == "part" and int(numbers["a"]) > int(numbers["b"]):
            numbers["a"], numbers["b"] = numbers["b"], numbers["a"]
        value = value_of(problem.expression.format_map(numbers))
        if _SMALLEST_VALUE <= value < _LARGEST_VALUE:
            return numbers, value
