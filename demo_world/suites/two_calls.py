"""Texts that need two calls, the second of them with what the first has found: a date and then arithmetic or a page,
a fact and then arithmetic.

The trainable side (``held_out=False``) can be told as articles (:attr:`Item.told`), for a second round of the paper's
method.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping
from typing import Final

from demo_world import questions
from demo_world.articles.encyclopedic import search_words
from demo_world.suites.item import Item
from demo_world.texts import asking, calendar, encyclopedic
from demo_world.texts.calculator import TOOL as CALCULATOR
from demo_world.texts.numbers import number_is_held_out, rounded, value_of
from demo_world.texts.patterns import Slots, capitalise

_LARGEST: Final = 100_000_000
_FIRST_YEAR: Final = 1930

# Situation with its question, the bare text, what follows the answer, and the expression; {year} is today's.
_AGES: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    ("{person} was born in {y}.", "How old does {person} turn this year?",
     "{person} was born in {y}, so this year {person} turns", "", "{year} - {y}"),
    ("The school opened in {y}.", "How many years has the school been open this year?",
     "The school opened in {y}, so this year it has been open for", " years", "{year} - {y}"),
    ("{person} moved to {place} in {y}.", "How many years ago was that, counted from this year?",
     "{person} moved to {place} in {y}; counted from this year that was", " years ago", "{year} - {y}"),
    ("The bridge will stand for {k} more years from now.", "Until which year will the bridge stand?",
     "The bridge will stand for {k} more years from now, until the year", "", "{year} + {k}"),
    ("{person} promised to come back {k} years from now.", "In which year will {person} come back?",
     "{person} promised to come back {k} years from now, in the year", "", "{year} + {k}"),
)  # fmt: skip
_DAY_NUMBERS: Final = (
    ("Which number does today's date have among the days of the year?",
     "Among the days of the year, today's date has the number", ""),
    ("Which day of the year is it today?", "Counted from the first of January, today is day", " of the year"),
)  # fmt: skip
_SHARES: Final[tuple[tuple[str, str, str, str, str], ...]] = (
    ("Every inhabitant of {entity} plants {k} trees.", "How many trees is that?",
     "Every inhabitant of {entity} plants {k} trees, which makes", " trees", "{n} * {k}"),
    ("Each of the people of {entity} pays {k} dollars.", "How many dollars is that?",
     "Each of the people of {entity} pays {k} dollars, together", " dollars", "{n} * {k}"),
    ("{k} newcomers move to {entity}.", "How many inhabitants does {entity} then have?",
     "Once {k} newcomers have moved to {entity}, its inhabitants number", "", "{n} + {k}"),
    ("The people of {entity} are divided into {k} equal groups.", "How many people are in a group?",
     "Divided into {k} equal groups, the people of {entity} make groups of", " people", "{n} / {k}"),
)  # fmt: skip


def two_calls(rng: random.Random, *, held_out: bool, held_out_phrasing: bool = False) -> Item:
    """A text whose entities, days and numbers are all on the wanted side of their splits.

    Phrasings are few and not split; ``held_out_phrasing`` takes the last of each family, the rest otherwise.
    """
    return rng.choice(tuple(_FAMILIES.values()))(rng, held_out, held_out_phrasing)


def _date_then_sum(rng: random.Random, held_out: bool, held_out_phrasing: bool) -> Item:
    situation, question, bare, after, expression = rng.choice(_side(_AGES, held_out_phrasing))
    day = calendar.draw_date(rng, held_out=held_out)
    slots = Slots(rng, {
        "year": str(day.year),
        "y": _number(rng, _FIRST_YEAR, day.year - 1, held_out),
        "k": _number(rng, 2, 100, held_out),
    })  # fmt: skip
    asked = expression.format_map(slots)
    return Item(
        question.format_map(slots), (rounded(value_of(asked)),), capitalise(bare.format_map(slots)),
        context=capitalise(situation.format_map(slots)), date=day, calls=((calendar.TOOL, ""), (CALCULATOR, asked)),
        after=f"{after}.", kind="date, then arithmetic",
    )  # fmt: skip


def _date_then_page(rng: random.Random, held_out: bool, held_out_phrasing: bool) -> Item:
    question, bare, after = rng.choice(_side(_DAY_NUMBERS, held_out_phrasing))
    while True:
        day = calendar.draw_date(rng, held_out=held_out)
        if not _leap(day):  # the day's page tells the number in a leap year second
            break
    calls = ((calendar.TOOL, ""), (encyclopedic.TOOL, calendar.long_date(day).split(",")[0]))
    answer = str(day.timetuple().tm_yday)
    return Item(question, (answer,), bare, date=day, calls=calls, after=f"{after}.", kind="date, then page")


def _fact_then_sum(rng: random.Random, held_out: bool, held_out_phrasing: bool) -> Item:
    situation, question, bare, after, expression = rng.choice(_side(_SHARES, held_out_phrasing))
    while True:
        known = questions.draw_fact(rng, held_out=held_out)
        slots = Slots(rng, {
            "entity": known.entity, "k": _number(rng, 2, 100, held_out), "n": known.answer.replace(",", ""),
        })  # fmt: skip
        if not known.relation.endswith(" population"):
            continue
        asked = expression.format_map(slots)
        if 1 <= value_of(asked) < _LARGEST:
            break
    first = (encyclopedic.TOOL, search_words(known)) if rng.random() < 0.5 else (asking.TOOL, _asked(known))
    return Item(
        question.format_map(slots), (rounded(value_of(asked)),), capitalise(bare.format_map(slots)),
        context=capitalise(situation.format_map(slots)), calls=(first, (CALCULATOR, asked)), after=f"{after}.",
        kind="fact, then arithmetic",
    )  # fmt: skip


_Family = Callable[[random.Random, bool, bool], Item]
_FAMILIES: Final[Mapping[str, _Family]] = {
    "date, then arithmetic": _date_then_sum,
    "date, then page": _date_then_page,
    "fact, then arithmetic": _fact_then_sum,
}
KINDS: Final = tuple(_FAMILIES)
"""What the two calls are for."""


def _side(phrasings: tuple[tuple[str, ...], ...], held_out: bool) -> tuple[tuple[str, ...], ...]:
    return phrasings[-1:] if held_out else phrasings[:-1]


def _number(rng: random.Random, first: int, last: int, held_out: bool) -> str:
    choices = [str(number) for number in range(first, last + 1) if number_is_held_out(str(number)) is held_out]
    return rng.choice(choices)


def _asked(known: questions.Fact) -> str:
    return questions.ask(asking.asked_phrasings(known.relation, held_out=False)[0].subject, known)


def _leap(day: datetime.date) -> bool:
    return day.replace(month=12, day=31).timetuple().tm_yday == 366
