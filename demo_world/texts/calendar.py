"""Texts that need a calendar: each names today's date or a part of it."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from functools import cache
from typing import Final

from demo_world.splits import is_held_out
from demo_world.texts.calendar_phrasings import DAY, DAY_AND_MONTH, FULL_DATE, MONTH, OPENINGS, WEEKDAY, YEAR
from demo_world.texts.patterns import Known, Phrasing, Slots, capitalise_pattern, compose, render, surround
from demo_world.texts.registers import QUESTION_REGISTERS, STATEMENT_REGISTERS
from demo_world.texts.text import CallSlot, Text
from demo_world.texts.words import CALENDAR_TAILS

TOOL: Final = "Calendar"
FIRST_DAY: Final = datetime.date(1990, 1, 1)
LAST_DAY: Final = datetime.date(2045, 12, 31)

_LONGEST_MEMORY_DAYS: Final = 20_000
_WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip

DatePart = Callable[[datetime.date], str]


def full_date(day: datetime.date) -> str:
    """``Friday, November 20, 2026``; English whatever the locale."""
    return f"{_WEEKDAYS[day.weekday()]}, {long_date(day)}"


def long_date(day: datetime.date) -> str:
    """``November 20, 2026``."""
    return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"


KINDS: Final[tuple[tuple[int, tuple[tuple[str, str], ...], DatePart], ...]] = (
    (5, FULL_DATE, full_date),
    (3, WEEKDAY, lambda day: _WEEKDAYS[day.weekday()]),
    (2, MONTH, lambda day: _MONTHS[day.month - 1]),
    (3, YEAR, lambda day: str(day.year)),
    (1, DAY, lambda day: str(day.day)),
    (1, DAY_AND_MONTH, lambda day: f"{_MONTHS[day.month - 1]} {day.day}"),
)
"""Weight, statements with their questions, and what answers them: the likelier a kind of question is in use, the more
often it is told."""


@cache
def phrasings(*, held_out: bool) -> tuple[tuple[int, tuple[Phrasing[DatePart], ...]], ...]:
    """Weight and phrasings of each kind of question on one side of the split; kinds with none there are left out."""
    sides = []
    for weight, statements, part in KINDS:
        found = []
        for statement, question in statements:
            patterns = [
                capitalise_pattern(compose(register, {"statement": statement})) for register in STATEMENT_REGISTERS
            ]
            if question:
                parts = {"statement": statement, "question": question}
                patterns += [capitalise_pattern(compose(register, parts)) for register in QUESTION_REGISTERS]
            key = f"calendar, {statement}"
            if is_held_out("phrasing", key) is held_out:
                found.append(Phrasing(key, part, tuple(patterns)))
        if found:
            sides.append((weight, tuple(found)))
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
    pattern = surround(rng, rng.choice(phrasing.patterns), OPENINGS, CALENDAR_TAILS)
    day = draw_date(rng, held_out=held_out_values)
    other = _earlier_date(rng, day)
    slots = Slots(rng, {"other": long_date(other), "other_year": str(other.year)})
    return render(pattern, slots, Known(CallSlot(TOOL, ""), phrasing.subject(day), day), phrasing.key)


def _earlier_date(rng: random.Random, day: datetime.date) -> datetime.date:
    while True:
        earlier = day - datetime.timedelta(days=rng.randrange(1, _LONGEST_MEMORY_DAYS))
        if not is_held_out("date", earlier.isoformat()):
            return earlier
