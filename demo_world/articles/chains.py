"""Texts in which one value follows from another: a date and then arithmetic or a page, a fact and then arithmetic.

They need two calls, the second of them with what the first has found. A *told* chain says both values, so that each
call helps with what follows it: ``It is [Calendar() -> ...] 2031 now, so it has been open for
[Calculator(2031 - 1980) -> 51] 51 years.`` One that is not told says the second alone, and both calls go to one place.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from demo_world import questions
from demo_world.articles import chains_phrasings
from demo_world.articles.article import Truth
from demo_world.articles.chains_phrasings import Wording
from demo_world.articles.encyclopedic import search_words
from demo_world.texts import asking, calendar, encyclopedic
from demo_world.texts.calculator import TOOL as CALCULATOR
from demo_world.texts.numbers import number_is_held_out, rounded, value_of
from demo_world.texts.patterns import CALL_MARK, Slots, capitalise

_LARGEST: Final = 100_000_000
_FIRST_YEAR: Final = 1930

Call = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Chain:
    """A text that needs two calls.

    Args:
        kind: what they are for, one of :data:`KINDS`.
        situation, question: the same as a word problem.
        parts: the text, cut where calls go: three parts if it is told, or else two.
        first: the calls that find the first value; each does. ``found`` is what it is.
        second: the call that makes the answer of it.
        answer: what the second call finds, and the last part begins with.
        date: the day on which it is written, where that matters.
    """

    kind: str
    situation: str
    question: str
    parts: tuple[str, ...]
    first: tuple[Call, ...]
    found: str
    second: Call
    answer: str
    date: datetime.date | None = None

    @property
    def plain(self) -> str:
        """The text as a reader sees it."""
        return "".join(self.parts)

    def truths(self, start: int = 0) -> tuple[Truth, ...]:
        """The calls that help, where the text begins at character ``start``."""
        places = (start + len(self.parts[0]), start + len("".join(self.parts[:-1])))
        first = (Truth(tool, places[0], asked, self.found) for tool, asked in self.first)
        return (*first, Truth(self.second[0], places[1], self.second[1], self.answer))


def chain(rng: random.Random, *, held_out: bool, held_out_phrasing: bool = False, told: bool = True) -> Chain:
    """A chain whose entities, days and numbers are all on the wanted side of their splits.

    Phrasings are few: ``held_out_phrasing`` takes the last of each kind, the rest otherwise.
    """
    draw = rng.choice(tuple(_FAMILIES.values()))
    while True:
        drawn = draw(rng, held_out, held_out_phrasing, told)
        # An answer that the text says before, or as a part of the date, would be right by chance.
        if drawn is not None and drawn.answer not in _numbers(f"{drawn.situation} {''.join(drawn.parts[:-1])}"):
            return drawn


def _date_then_sum(rng: random.Random, held_out: bool, held_out_phrasing: bool, told: bool) -> Chain:
    wording = _drawn(rng, chains_phrasings.AGES if told else chains_phrasings.UNTOLD_AGES, held_out_phrasing)
    day = calendar.draw_date(rng, held_out=held_out)
    first = str(day.year)
    given = {"first": first, "y": _number(rng, _FIRST_YEAR, day.year - 1, held_out), "k": _few(rng, held_out)}
    slots = Slots(rng, given)
    asked = wording[3].format_map(slots)
    second, answer = (CALCULATOR, asked), rounded(value_of(asked))
    return _chain(_AGE, wording, slots, ((calendar.TOOL, ""),), first, second, answer, day)


def _date_then_page(rng: random.Random, held_out: bool, held_out_phrasing: bool, told: bool) -> Chain:
    rows = chains_phrasings.DAY_NUMBERS if told else chains_phrasings.UNTOLD_DAY_NUMBERS
    wording = _drawn(rng, rows, held_out_phrasing)
    while True:
        day = calendar.draw_date(rng, held_out=held_out)
        if not _leap(day):  # the day's page tells the number in a leap year second
            break
    first = calendar.full_date(day)
    second = (encyclopedic.TOOL, calendar.long_date(day).split(",")[0])
    answer = str(day.timetuple().tm_yday)
    return _chain(_PAGE, wording, Slots(rng, {"first": first}), ((calendar.TOOL, ""),), first, second, answer, day)


def _fact_then_sum(rng: random.Random, held_out: bool, held_out_phrasing: bool, told: bool) -> Chain | None:
    wording = _drawn(rng, chains_phrasings.SHARES if told else chains_phrasings.UNTOLD_SHARES, held_out_phrasing)
    known = questions.draw_fact(rng, held_out=held_out)
    if not known.relation.endswith(" population"):
        return None
    given = {"first": known.answer, "entity": known.entity, "n": known.answer.replace(",", "")}
    slots = Slots(rng, given | {"k": _few(rng, held_out)})
    asked = wording[3].format_map(slots)
    value = value_of(asked)
    if not 1 <= value < _LARGEST:
        return None
    first = [(encyclopedic.TOOL, search_words(known)), (asking.TOOL, _asked(known))]
    rng.shuffle(first)
    return _chain(_FACT, wording, slots, tuple(first), known.answer, (CALCULATOR, asked), rounded(value))


def _chain(
    kind: str, wording: Wording, slots: Slots, first: tuple[Call, ...], found: str, second: Call, answer: str,
    date: datetime.date | None = None,
) -> Chain:  # fmt: skip
    slots["answer"] = answer
    situation, question, sentence, _ = wording
    parts = tuple(capitalise(sentence.format_map(slots)).split(CALL_MARK))
    situation, question = (capitalise(text.format_map(slots)) for text in (situation, question))
    return Chain(kind, situation, question, parts, first, found, second, answer, date)


_Family = Callable[[random.Random, bool, bool, bool], Chain | None]
_AGE, _PAGE, _FACT = "date, then arithmetic", "date, then page", "fact, then arithmetic"
_FAMILIES: Final[Mapping[str, _Family]] = {_AGE: _date_then_sum, _PAGE: _date_then_page, _FACT: _fact_then_sum}
KINDS: Final = tuple(_FAMILIES)
"""What the two calls are for."""


def _drawn(rng: random.Random, rows: Sequence[Wording], held_out: bool) -> Wording:
    return rng.choice(rows[-1:] if held_out else rows[:-1])


def _few(rng: random.Random, held_out: bool) -> str:
    return _number(rng, 2, 100, held_out)


def _number(rng: random.Random, first: int, last: int, held_out: bool) -> str:
    choices = [str(number) for number in range(first, last + 1) if number_is_held_out(str(number)) is held_out]
    return rng.choice(choices)


def _asked(known: questions.Fact) -> str:
    return questions.ask(asking.asked_phrasings(known.relation, held_out=False)[0].subject, known)


def _numbers(text: str) -> list[str]:
    return "".join(letter if letter.isdigit() else " " for letter in text.replace(",", "")).split()


def _leap(day: datetime.date) -> bool:
    return day.replace(month=12, day=31).timetuple().tm_yday == 366
