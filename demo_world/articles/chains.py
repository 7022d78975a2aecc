"""Texts in which one value follows from another: a date or a fact and then arithmetic with it, a fact and then one
about it.

They need two calls, the second of them with what the first has found. A *told* chain says both values, so that each
call helps with what follows it: ``It is [Calendar() -> ...] Monday, May 12, 2031 today. From 1980 to 2031 the school
was open; that makes [Calculator(2031 - 1980) -> 51] 51 years of lessons.`` One that is not told says the second alone,
and both calls go to one place.
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, TypeVar

from demo_world import geography, questions
from demo_world.articles.article import Truth
from demo_world.city_pages import capital_cities
from demo_world.relations import Fact, statements
from demo_world.splits import is_held_out
from demo_world.tables import read
from demo_world.texts import asking, calendar, searching
from demo_world.texts.calculator import TOOL as CALCULATOR
from demo_world.texts.numbers import number_is_held_out, rounded, value_of
from demo_world.texts.patterns import CALL_MARK, Slots, capitalise
from demo_world.titles import city_titles

_FIRST_YEAR: Final = 1930

Call = tuple[str, str]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class _Row:
    """Situation and question of a chain, its text with a bar where each call goes, and the calculation."""

    situation: str
    question: str
    text: str
    expression: str = ""


@dataclass(frozen=True, slots=True)
class _ChainTable:
    untold_facts: Mapping[str, tuple[str, ...]]
    fact_questions: Mapping[str, str]
    ages: tuple[_Row, ...]
    untold_ages: tuple[_Row, ...]
    ways: tuple[_Row, ...]
    untold_ways: tuple[_Row, ...]


_TABLE: Final = read("chains", _ChainTable)


@dataclass(frozen=True, slots=True)
class Chain:
    """A text that needs two calls.

    Args:
        kind: what they are for, one of :data:`KINDS`.
        situation, question: the same as a word problem.
        parts: the text, cut where calls go: three parts if it is told, or else two.
        first: the calls that find the first value; each does. ``found`` is what it is.
        second: the calls that make the answer of it; each does.
        answer: what the second call finds, and the last part begins with.
        date: the day on which it is written, where that matters.
    """

    kind: str
    situation: str
    question: str
    parts: tuple[str, ...]
    first: tuple[Call, ...]
    found: str
    second: tuple[Call, ...]
    answer: str
    date: datetime.date | None = None

    @property
    def plain(self) -> str:
        """The text as a reader sees it."""
        return "".join(self.parts)

    def truths(self, start: int = 0) -> tuple[Truth, ...]:
        """The calls that help, where the text begins at character ``start``."""
        places = (start + len(self.parts[0]), start + len("".join(self.parts[:-1])))
        found = ((self.first, places[0], self.found), (self.second, places[1], self.answer))
        return tuple(Truth(tool, at, asked, answer) for calls, at, answer in found for tool, asked in calls)


def chain(rng: random.Random, *, held_out: bool, held_out_phrasing: bool = False, told: bool = True) -> Chain:
    """A chain whose entities, days and numbers are all on the wanted side of their splits.

    ``held_out_phrasing`` takes the statements that are held out and, of what is worded here, the last of each list.
    """
    while True:
        drawn = rng.choice(tuple(_FAMILIES.values()))(rng, held_out, held_out_phrasing, told)
        # An answer that the text says before would be right by chance.
        if drawn is not None and drawn.answer.replace(",", "") not in _numbers(
            f"{drawn.situation} {''.join(drawn.parts[:-1])}"
        ):
            return drawn


def _date_then_sum(rng: random.Random, held_out: bool, held_out_phrasing: bool, told: bool) -> Chain:
    wording = _drawn(rng, _TABLE.ages if told else _TABLE.untold_ages, held_out_phrasing)
    day = calendar.draw_date(rng, held_out=held_out)
    today = calendar.full_date(day)
    earlier = _number(rng, _FIRST_YEAR, day.year - 1, held_out)
    slots = Slots(rng, {"first": today, "year": str(day.year), "y": earlier, "k": _few(rng, held_out)})
    asked = wording.expression.format_map(slots)
    second, answer = ((CALCULATOR, asked),), rounded(value_of(asked))
    return _chain(_AGE, wording, slots, ((calendar.TOOL, ""),), today, second, answer, day)


def _fact_then_sum(rng: random.Random, held_out: bool, held_out_phrasing: bool, told: bool) -> Chain | None:
    wording = _drawn(rng, _TABLE.ways if told else _TABLE.untold_ways, held_out_phrasing)
    known = _fact(rng, "city distance", held_out)
    if "," in known.answer:  # in calculations numbers are written plainly
        return None
    slots = Slots(rng, {"entity": known.entity, "n": known.answer, "k": _few(rng, held_out)})
    asked = wording.expression.format_map(slots)
    value = value_of(asked)
    if value < 1:
        return None
    if told:
        said = _statement(rng, known, held_out_phrasing)
        if said is None:
            return None
        sentence = _filled(said, slots, known.entity, known.answer)
        wording = replace(wording, text=f"{wording.situation} {sentence}. {wording.text}")
    return _chain(_SUM, wording, slots, _finding(rng, known), known.answer, ((CALCULATOR, asked),), rounded(value))


def _fact_then_fact(rng: random.Random, held_out: bool, held_out_phrasing: bool, told: bool) -> Chain | None:
    known = _fact(rng, rng.choice(("city place", "city place", "country capital")), held_out)
    following = _following(rng, known, held_out)
    if following is None:
        return None
    slots = Slots(rng, {"entity": known.entity})
    question = _TABLE.fact_questions[following.relation]
    if told:
        sentences = []
        for fact in (known, following):
            if (said := _statement(rng, fact, held_out_phrasing)) is None:
                return None
            sentences.append(_filled(said, slots, fact.entity, fact.answer))
        text = f"{question} {'. '.join(sentences)}"
    else:
        said = _drawn(rng, _TABLE.untold_facts[following.relation], held_out_phrasing)
        text = _filled(said, slots, known.entity, following.answer)
    slots["entity"] = known.entity
    wording = _Row("", question, f"{text}.")
    first, second = _finding(rng, known), _finding(rng, following)
    return _chain(_TWO_FACTS, wording, slots, first, known.answer, second, following.answer)


def _chain(
    kind: str, wording: _Row, slots: Slots, first: tuple[Call, ...], found: str, second: tuple[Call, ...],
    answer: str, date: datetime.date | None = None,
) -> Chain:  # fmt: skip
    slots["answer"] = answer
    parts = tuple(capitalise(wording.text.format_map(slots)).split(CALL_MARK))
    situation, question = (capitalise(text.format_map(slots)) for text in (wording.situation, wording.question))
    return Chain(kind, situation, question, parts, first, found, second, answer, date)


_Family = Callable[[random.Random, bool, bool, bool], Chain | None]
_AGE, _SUM, _TWO_FACTS = "date, then arithmetic", "fact, then arithmetic", "fact, then fact"
_FAMILIES: Final[Mapping[str, _Family]] = {_AGE: _date_then_sum, _SUM: _fact_then_sum, _TWO_FACTS: _fact_then_fact}
KINDS: Final = tuple(_FAMILIES)
"""What the two calls are for."""


def _following(rng: random.Random, known: Fact, held_out: bool) -> Fact | None:
    """A fact about what ``known`` gives: a city's country, or a country's capital; ``None`` if there is none.

    What follows from a trainable fact is trainable too."""
    if known.relation == "country capital":
        city = capital_cities().get(_countries()[known.entity].code)
        if city is None or city_titles().get(city.key) != known.answer:
            return None
        if not held_out and is_held_out("city", city.name):
            return None
        return Fact(city.name, city.name, "city population", f"{city.population:,}")
    country = _countries().get(known.answer)  # none has a region before it
    if country is None or (not held_out and is_held_out("country", country.name)):
        return None
    name, number = rng.choice((("population", country.population), ("area", country.area_km2)))
    return Fact(country.name, country.in_text, f"country {name}", f"{number:,}") if number else None


@cache
def _countries() -> dict[str, geography.Country]:
    """Countries by their name in a sentence."""
    return {country.in_text: country for country in geography.countries()}


def _fact(rng: random.Random, relation: str, held_out: bool) -> Fact:
    while True:
        fact = questions.draw_fact(rng, held_out=held_out)
        if fact.relation == relation:
            return fact


def _finding(rng: random.Random, fact: Fact) -> tuple[Call, ...]:
    """The calls that find a fact, in any order."""
    asked = asking.asked_phrasings(fact.relation, held_out=False)[0].subject
    found = [(searching.TOOL, fact.search), (asking.TOOL, questions.ask(asked, fact))]
    rng.shuffle(found)
    return tuple(found)


def _filled(pattern: str, slots: Slots, entity: str, answer: str) -> str:
    slots["entity"], slots["answer"] = entity, answer
    return capitalise(pattern.format_map(slots))


def _statement(rng: random.Random, fact: Fact, held_out: bool) -> str | None:
    known = statements(fact.relation, held_out=held_out)
    return rng.choice(known) if known else None  # few statements, of which none is held out


def _drawn(rng: random.Random, rows: Sequence[Row], held_out: bool) -> Row:
    return rng.choice(rows[-1:] if held_out else rows[:-1])


def _few(rng: random.Random, held_out: bool) -> str:
    return _number(rng, 2, 100, held_out)


def _number(rng: random.Random, first: int, last: int, held_out: bool) -> str:
    choices = [str(number) for number in range(first, last + 1) if number_is_held_out(str(number)) is held_out]
    return rng.choice(choices)


def _numbers(text: str) -> list[str]:
    return "".join(letter if letter.isdigit() else " " for letter in text.replace(",", "")).split()
