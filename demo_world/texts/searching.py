"""Texts that need a look into the encyclopedia: each states one fact about a city or a country.

A fact that is asked for in a question is :mod:`demo_world.texts.asking`'s, and so are facts of other kinds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from demo_world import geography
from demo_world.relations import OPENINGS, TAILS, Fact, statement_key, statements
from demo_world.splits import is_held_out
from demo_world.texts.patterns import Known, Phrasing, Slots, looked_up, render, surround
from demo_world.texts.text import CallSlot, Text
from demo_world.titles import unique_cities

TOOL: Final = "WikiSearch"


_CITY_RELATIONS: Final[Mapping[str, Callable[[geography.City], str]]] = {
    "city population": lambda city: f"{city.population:,}",
    "city place": lambda city: f"{city.region}, {city.country}" if city.region else city.country_in_text,
    "city time zone": lambda city: city.timezone,
}
_COUNTRY_RELATIONS: Final[Mapping[str, Callable[[geography.Country], str]]] = {
    "country population": lambda country: f"{country.population:,}" if country.population else "",
    "country capital": lambda country: country.capital or "",
    "country area": lambda country: f"{country.area_km2:,}" if country.area_km2 else "",
    "country currency": lambda country: country.currency_name or "",
    "country continent": lambda country: country.continent,
}
_CITY_SHARE: Final = 0.8


@cache
def city_pool(*, held_out: bool) -> tuple[geography.City, ...]:
    """Cities whose name is their page's title. A trainable one also lies in a trainable country, which its page
    names."""
    return tuple(
        city
        for city in unique_cities()
        if is_held_out("city", city.name) is held_out and (held_out or not is_held_out("country", city.country))
    )


@cache
def country_pool(*, held_out: bool) -> tuple[geography.Country, ...]:
    """Countries of one side of the split; a trainable one has a trainable capital."""
    return tuple(
        country
        for country in geography.countries()
        if is_held_out("country", country.name) is held_out
        and (held_out or not is_held_out("city", country.capital or ""))
    )


@cache
def relation_phrasings(relation: str, *, held_out: bool) -> tuple[Phrasing[str], ...]:
    """The statements about a relation on one side of the split."""
    return tuple(
        Phrasing(statement_key(relation, statement), relation, looked_up(statement))
        for statement in statements(relation, held_out=held_out)
    )


def fact_text(rng: random.Random, *, held_out_values: bool = False, held_out_phrasing: bool = False) -> Text:
    """A text with one search, its entity and its phrasing from the wanted sides of the split."""
    while True:
        fact = _draw_fact(rng, held_out=held_out_values)
        phrasings = relation_phrasings(fact.relation, held_out=held_out_phrasing)
        if fact.answer and phrasings:
            break
    phrasing = rng.choice(phrasings)
    pattern = surround(rng, rng.choice(phrasing.patterns), OPENINGS, TAILS)
    return render(pattern, fact_slots(rng, fact), Known(CallSlot(TOOL, fact.search), fact.answer), phrasing.key)


def fact_slots(rng: random.Random, fact: Fact) -> Slots:
    """What a text about ``fact`` names: its entity, and a trainable neighbour beside it."""
    return Slots(rng, {"entity": fact.entity, "neighbour": rng.choice(city_pool(held_out=False)).name})


def _draw_fact(rng: random.Random, *, held_out: bool) -> Fact:
    """A fact about a city (four times in five) or a country of the wanted side; it may have no answer."""
    if rng.random() < _CITY_SHARE:
        city = rng.choice(city_pool(held_out=held_out))
        relation, answer_of = rng.choices(tuple(_CITY_RELATIONS.items()), (6, 3, 2))[0]
        return Fact(city.name, city.name, relation, answer_of(city))
    country = rng.choice(country_pool(held_out=held_out))
    relation, answer_at = rng.choices(tuple(_COUNTRY_RELATIONS.items()), (2, 2, 1, 1, 1))[0]
    return Fact(country.name, country.in_text, relation, answer_at(country))
