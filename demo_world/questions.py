"""Questions over the bundled encyclopedia, in many phrasings, with the answer as its page says it.

A question is about one entity, named by its page's title, and one relation. Entities are split into trained-on and
held-out by `demo_world.splits`; so are a few phrasings of each relation. A held-out entity is never asked about in
training; its page stays in the encyclopedia, since finding it is what is tested.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, Literal, TypeVar

from demo_world import culture, geography, titles
from demo_world.city_pages import capital_cities, distance_km
from demo_world.relations import RELATIONS, Fact
from demo_world.splits import on_side, stable_hash

Split = Literal["held-out entities", "held-out phrasings"]

SPLITS: Final[tuple[Split, ...]] = ("held-out entities", "held-out phrasings")
"""``held-out entities``: the entity is new, the phrasing known. ``held-out phrasings``: both are new."""

HELD_OUT_PHRASINGS_PERCENT: Final = 15.0
ThingT = TypeVar("ThingT")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answer as the page titled ``title`` writes it, and what is asked: ``city population``."""

    question: str
    answer: str
    title: str
    relation: str


@dataclass(frozen=True, slots=True)
class _Kind(Generic[ThingT]):
    """One kind of entity: its share of the questions, the split's name of it, those that have a page, the key that
    splits them, and a fact about one."""

    share: float
    name: str
    things: Callable[[], Iterable[ThingT]]
    key: Callable[[ThingT], str]
    fact: Callable[[random.Random, ThingT], Fact]


def question(number: int, *, seed: int = 0) -> Question:
    """Training question ``number`` of ``seed``; it depends on these two alone."""
    rng = random.Random(stable_hash("question", str(seed), str(number)))
    return _draw(rng, held_out=False, held_out_phrasing=False)


def suite(split: Split, *, count: int = 500, seed: int = 0) -> tuple[Question, ...]:
    """``count`` different questions about held-out entities; the same arguments give the same questions."""
    rng = random.Random(stable_hash("question suite", split, str(seed)))
    found: dict[str, Question] = {}
    while len(found) < count:
        drawn = _draw(rng, held_out=True, held_out_phrasing=split == "held-out phrasings")
        found.setdefault(drawn.question, drawn)
    return tuple(found.values())


@cache
def phrasings(relation: str, *, held_out: bool) -> tuple[str, ...]:
    """The phrasings of a relation on one side of the split; none may be held out of a relation that has few.

    Raises:
        KeyError: there is no such relation.
    """
    known = RELATIONS[relation].questions
    return on_side("question phrasing", known, held_out=held_out, percent=HELD_OUT_PHRASINGS_PERCENT)


def draw_fact(rng: random.Random, *, held_out: bool) -> Fact:
    """A fact with an answer about an entity of the wanted side; common kinds of question are drawn more often."""
    while True:
        kind = rng.choices(_KINDS, weights=[kind.share for kind in _KINDS])[0]
        fact = kind.fact(rng, rng.choice(_side(kind, held_out)))
        if fact.answer:
            return fact


def ask(phrasing: str, fact: Fact) -> str:
    """The question about ``fact`` in this phrasing, as a sentence of its own."""
    asked = phrasing.format(entity=fact.entity)
    return asked[:1].upper() + asked[1:]


def _draw(rng: random.Random, *, held_out: bool, held_out_phrasing: bool) -> Question:
    while True:
        fact = draw_fact(rng, held_out=held_out)
        if known := phrasings(fact.relation, held_out=held_out_phrasing):
            return Question(ask(rng.choice(known), fact), fact.answer, fact.title, fact.relation)


@cache
def _side(kind: _Kind[Any], held_out: bool) -> tuple[Any, ...]:
    return on_side(kind.name, kind.things(), held_out=held_out, key=kind.key)


@cache
def _ranks() -> dict[str, int]:
    """Each city's place among its country's by inhabitants, by key."""
    by_country = geography.grouped(geography.cities(), lambda city: city.country_code).values()
    return {city.key: rank for own in by_country for rank, city in enumerate(own, start=1)}


def _city_fact(rng: random.Random, city: geography.City) -> Fact:
    title = titles.city_titles()[city.key]
    country = geography.countries_by_code()[city.country_code]
    capital = capital_cities().get(city.country_code)
    region = None if city is capital else city.region  # a capital's page names no region
    rank = _ranks()[city.key]
    answers = {
        "population": f"{city.population:,}",
        "place": f"{region}, {country.name}" if region else country.in_text,
        "time zone": city.timezone,
        "currency": country.currency_name or "",
        "rank": f"{rank:,}" if rank > 1 else "",
        "distance": f"{round(distance_km(city, capital)):,}" if capital and city is not capital else "",
        "coordinates": ", ".join(city.coordinates),
    }
    relation = rng.choices(tuple(answers), (7, 4, 3, 2, 1, 1, 1))[0]
    return Fact(title, title, f"city {relation}", answers[relation])


def _country_fact(rng: random.Random, country: geography.Country) -> Fact:
    answers = {
        "population": f"{country.population:,}" if country.population else "",
        "capital": country.capital or "",
        "area": f"{country.area_km2:,}" if country.area_km2 else "",
        "currency": country.currency_name or "",
        "continent": country.continent,
        "internet domain": country.tld or "",
        "telephone code": f"+{country.phone_code}" if country.phone_code else "",
        "two-letter code": country.code,
    }
    relation = rng.choices(tuple(answers), (4, 4, 3, 3, 2, 1, 1, 1))[0]
    return Fact(country.name, country.in_text, f"country {relation}", answers[relation])


@cache
def _largest_cities() -> dict[str, str]:
    """The name of each US state's most populous city, by the state's name."""
    largest: dict[str, str] = {}
    for city in geography.cities():
        if city.country_code == "US" and city.region is not None:
            largest.setdefault(city.region, city.name)
    return largest


def _state_fact(rng: random.Random, state: geography.State) -> Fact:
    relation, answer = rng.choice(
        [("largest city", _largest_cities().get(state.name, "")), ("postal abbreviation", state.code)]
    )
    title = titles.state_titles()[state.code]
    return Fact(title, title, f"state {relation}", answer if state.name in _largest_cities() else "")


def _county_fact(_: random.Random, county: geography.County) -> Fact:
    title = titles.county_titles()[county.fips]
    return Fact(title, title, "county code", county.fips)  # the title itself names the state


def _subdivision_fact(rng: random.Random, part: geography.Subdivision) -> Fact:
    title = titles.subdivision_titles()[part.code]
    relation, answer = rng.choice(
        [("country", geography.with_article(part.country)), ("kind", part.kind), ("code", part.code)]
    )
    # A title such as `Central (region, Ghana)` answers by itself.
    return Fact(title, title, f"subdivision {relation}", "" if "(" in title and relation != "code" else answer)


def _language_fact(rng: random.Random, language: culture.Language) -> Fact:
    relation, answer = rng.choice([("script", language.script or ""), ("code", language.code)])
    return Fact(titles.language_titles()[language.code], language.name, f"language {relation}", answer)


def _currency_fact(rng: random.Random, currency: culture.Currency) -> Fact:
    relation, answer = rng.choice([("code", currency.code), ("number", str(currency.number))])
    return Fact(titles.currency_titles()[currency.code], f"the {currency.name}", f"currency {relation}", answer)


def _holidays() -> list[culture.Holiday]:
    """Holidays that fall on one day of the year in their country."""
    named = geography.grouped(culture.public_holidays(), lambda holiday: (holiday.country, holiday.name))
    return [days[0] for days in named.values() if len(days) == 1]


def _holiday_fact(_: random.Random, holiday: culture.Holiday) -> Fact:
    entity = f"{holiday.name} in {geography.with_article(holiday.country)}"
    day = f"{culture.MONTHS[holiday.month - 1]} {holiday.day}"
    return Fact(f"Public holidays in {geography.with_article(holiday.country)}", entity, "holiday date", day)


_KINDS: Final[tuple[_Kind[Any], ...]] = (
    _Kind(0.58, "city", lambda: [one for one in geography.cities() if one.key in titles.city_titles()],
          lambda city: city.name, _city_fact),
    _Kind(0.20, "country", lambda: [one for one in geography.countries() if one.code in titles.country_titles()],
          lambda country: country.name, _country_fact),
    _Kind(0.03, "state", lambda: [one for one in geography.states() if one.code != "DC"],
          lambda state: state.name, _state_fact),
    _Kind(0.05, "county", lambda: [one for one in geography.counties() if one.fips in titles.county_titles()],
          lambda county: county.fips, _county_fact),
    _Kind(0.05, "subdivision",
          lambda: [one for one in geography.subdivisions() if one.code in titles.subdivision_titles()],
          lambda part: part.code, _subdivision_fact),
    _Kind(0.03, "language", culture.languages, lambda language: language.name, _language_fact),
    _Kind(0.03, "currency", lambda: [one for one in culture.currencies() if one.code in titles.currency_titles()],
          lambda currency: currency.name, _currency_fact),
    _Kind(0.03, "holiday", _holidays, lambda holiday: f"{holiday.name}, {holiday.country}", _holiday_fact),
)  # fmt: skip
