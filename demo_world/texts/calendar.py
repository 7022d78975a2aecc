"""Texts that need a calendar: each names today's date or a part of it."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from demo_world.culture import MONTHS
from demo_world.splits import is_held_out, on_side
from demo_world.tables import read
from demo_world.texts.patterns import REGISTERS, VOCABULARY, Known, Phrasing, Slots, render, surround, worded
from demo_world.texts.text import CallSlot, Text

TOOL: Final = "Calendar"
FIRST_DAY: Final = datetime.date(1990, 1, 1)
LAST_DAY: Final = datetime.date(2045, 12, 31)

_LONGEST_MEMORY_DAYS: Final = 20_000
_WEEKDAYS: Final = VOCABULARY.words["weekday"]

DatePart = Callable[[datetime.date], str]


@dataclass(frozen=True, slots=True)
class DateKind:
    """What is asked for, one of :data:`PARTS`; how often it is; statements with their questions (empty: none)."""

    part: str
    weight: int
    statements: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _CalendarTable:
    kinds: tuple[DateKind, ...]
    openings: tuple[str, ...]
    tails: tuple[str, ...]


_TABLE: Final = read("calendar", _CalendarTable)
KINDS: Final = _TABLE.kinds


def full_date(day: datetime.date) -> str:
    """``Friday, November 20, 2026``; English whatever the locale."""
    return f"{_WEEKDAYS[day.weekday()]}, {long_date(day)}"


def long_date(day: datetime.date) -> str:
    """``November 20, 2026``."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


PARTS: Final[Mapping[str, DatePart]] = {
    "full_date": full_date,
    "long_date": long_date,
    "weekday": lambda day: _WEEKDAYS[day.weekday()],
    "month": lambda day: MONTHS[day.month - 1],
    "year": lambda day: str(day.year),
    "day": lambda day: str(day.day),
    "day_and_month": lambda day: f"{MONTHS[day.month - 1]} {day.day}",
}
"""The parts of a date that texts name."""


def statements(kind: DateKind, *, held_out: bool) -> tuple[tuple[str, str], ...]:
    """The kind's statements with their questions on one side of the split."""
    return on_side("phrasing", kind.statements, held_out=held_out, key=lambda row: f"calendar, {row[0]}")


@cache
def phrasings(*, held_out: bool) -> tuple[tuple[int, tuple[Phrasing[DatePart], ...]], ...]:
    """Weight and phrasings of each kind of question on one side of the split; kinds with none there are left out."""
    sides = []
    for kind in KINDS:
        found = []
        for statement, question in statements(kind, held_out=held_out):
            registers = (*REGISTERS.statement, *(REGISTERS.question if question else ()))
            patterns = worded(registers, statement=statement, question=question)
            found.append(Phrasing(f"calendar, {statement}", PARTS[kind.part], patterns))
        if found:
            sides.append((kind.weight, tuple(found)))
    return tuple(sides)


def draw_date(rng: random.Random, *, held_out: bool) -> datetime.date:
    """A day from 1990 to 2045, each as likely, from the wanted side of the split."""
    while True:
        day = FIRST_DAY + datetime.timedelta(days=rng.randrange((LAST_DAY - FIRST_DAY).days + 1))
        if is_held_out("date", day.isoformat()) is held_out:
            return day


def calendar_text(rng: random.Random, *, held_out_values: bool = False, held_out_phrasing: bool = False) -> Text:
    """A text with one calendar call, written on a day and in a phrasing from the wanted sides of the split.

    Other dates in the text are earlier, trainable ones.
    """
    sides = phrasings(held_out=held_out_phrasing)
    kind = rng.choices([family for _, family in sides], weights=[weight for weight, _ in sides])[0]
    phrasing = rng.choice(kind)
    pattern = surround(rng, rng.choice(phrasing.patterns), _TABLE.openings, _TABLE.tails)
    day = draw_date(rng, held_out=held_out_values)
    other = _earlier_date(rng, day)
    slots = Slots(rng, {"other": long_date(other), "other_year": str(other.year)})
    return render(pattern, slots, Known(CallSlot(TOOL, ""), phrasing.subject(day), day), phrasing.key)


def _earlier_date(rng: random.Random, day: datetime.date) -> datetime.date:
    while True:
        earlier = day - datetime.timedelta(days=rng.randrange(1, _LONGEST_MEMORY_DAYS))
        if not is_held_out("date", earlier.isoformat()):
            return earlier
