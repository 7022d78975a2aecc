"""Texts that need a look into the encyclopedia: each states one fact about a city or a country.

A fact that is asked for in a question is :mod:`demo_world.texts.asking`'s, and so are facts of other kinds.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from demo_world import facts
from demo_world.splits import is_held_out
from demo_world.texts import fact_phrasings
from demo_world.texts.patterns import Known, Phrasing, Slots, capitalise_pattern, compose, render, surround
from demo_world.texts.registers import ENCYCLOPEDIA_REGISTERS
from demo_world.texts.text import CallSlot, Text
from demo_world.texts.words import FACT_TAILS

TOOL: Final = "WikiSearch"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact: the entity's name in the encyclopedia and in a sentence, what is asked of it, and the answer as
    written there."""

    title: str
    entity: str
    relation: str
    answer: str

    @property
    def query(self) -> str:
        """The search that finds it: compact and the same for every phrasing."""
        return f"{self.title} {self.relation}"


def _place(city: facts.City) -> str:
    """Where a city lies, as its page says it."""
    return f"{city.region}, {city.country}" if city.region else city.country_in_text


Statements = tuple[str, ...]

_CITY_RELATIONS: Final[tuple[tuple[int, str, Statements, Callable[[facts.City], str]], ...]] = (
    (6, "population", fact_phrasings.POPULATION, lambda city: f"{city.population:,}"),
    (3, "country", fact_phrasings.COUNTRY, _place),
    (2, "time zone", fact_phrasings.TIME_ZONE, lambda city: city.timezone),
)
_COUNTRY_RELATIONS: Final[tuple[tuple[int, str, Statements, Callable[[facts.Country], str]], ...]] = (
    (
        2,
        "population",
        fact_phrasings.POPULATION,
        lambda country: f"{country.population:,}" if country.population else "",
    ),
    (2, "capital", fact_phrasings.CAPITAL, lambda country: country.capital or ""),
    (1, "area", fact_phrasings.AREA, lambda country: f"{country.area_km2:,}" if country.area_km2 else ""),
    (1, "currency", fact_phrasings.CURRENCY, lambda country: country.currency_name or ""),
    (1, "continent", fact_phrasings.CONTINENT, lambda country: country.continent),
)
_CITY_SHARE: Final = 0.8


@cache
def city_pool(*, held_out: bool) -> tuple[facts.City, ...]:
    """Cities whose name is their page's title. A trainable one also lies in a trainable country, which its page
    names."""
    return tuple(
        city
        for city in facts.unique_cities()
        if is_held_out("city", city.name) is held_out and (held_out or not is_held_out("country", city.country))
    )


@cache
def country_pool(*, held_out: bool) -> tuple[facts.Country, ...]:
    """Countries of one side of the split; a trainable one has a trainable capital."""
    return tuple(
        country
        for country in facts.countries()
        if is_held_out("country", country.name) is held_out
        and (held_out or not is_held_out("city", country.capital or ""))
    )


@cache
def relation_phrasings(relation: str, *, held_out: bool) -> tuple[Phrasing[str], ...]:
    """The phrasings of one relation on one side of the split."""
    statements = {name: said for _, name, said, _ in (*_CITY_RELATIONS, *_COUNTRY_RELATIONS)}[relation]
    found = []
    for statement in statements:
        patterns = tuple(
            capitalise_pattern(compose(register, {"statement": statement})) for register in ENCYCLOPEDIA_REGISTERS
        )
        key = f"{relation}, {statement}"
        if is_held_out("phrasing", key) is held_out:
            found.append(Phrasing(key, relation, patterns))
    return tuple(found)


def draw_fact(rng: random.Random, *, held_out: bool, relations: frozenset[str] | None = None) -> Fact:
    """A fact about a city (four times in five) or a country of the wanted side; ``relations`` narrows what may be
    asked."""
    while True:
        if rng.random() < _CITY_SHARE:
            city = rng.choice(city_pool(held_out=held_out))
            _, relation, _, value_of = rng.choices(_CITY_RELATIONS, weights=[row[0] for row in _CITY_RELATIONS])[0]
            fact = Fact(city.name, city.name, relation, value_of(city))
        else:
            country = rng.choice(country_pool(held_out=held_out))
            _, relation, _, value_at = rng.choices(_COUNTRY_RELATIONS, weights=[row[0] for row in _COUNTRY_RELATIONS])[
                0
            ]
            fact = Fact(country.name, country.in_text, relation, value_at(country))
        if fact.answer and (relations is None or relation in relations):
            return fact


def fact_text(rng: random.Random, *, held_out_values: bool = False, held_out_phrasing: bool = False) -> Text:
    """A text with one search, its entity and its phrasing from the wanted sides of the split.

    A neighbour that is named beside the entity is a trainable one.
    """
    asked = frozenset(
        name
        for _, name, *_ in (*_CITY_RELATIONS, *_COUNTRY_RELATIONS)
        if relation_phrasings(name, held_out=held_out_phrasing)
    )
    fact = draw_fact(rng, held_out=held_out_values, relations=asked)
    phrasing = rng.choice(relation_phrasings(fact.relation, held_out=held_out_phrasing))
    pattern = surround(rng, rng.choice(phrasing.patterns), fact_phrasings.OPENINGS, FACT_TAILS)
    neighbour = rng.choice(city_pool(held_out=False)).name
    slots = Slots(rng, {"entity": fact.entity, "neighbour": neighbour})
    return render(pattern, slots, Known(CallSlot(TOOL, fact.query), fact.answer), phrasing.key)
