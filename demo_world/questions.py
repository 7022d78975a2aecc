"""Questions over the bundled encyclopedia, in many phrasings, with the answer as its page says it.

A question is about one entity, named by its page's title, and one relation. Entities are split into trained-on and
held-out by `demo_world.splits`; so are a few phrasings of each relation. A held-out entity is never asked about in
training; its page stays in the encyclopedia, since finding it is what is tested.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, TypeVar

from demo_world import facts
from demo_world.city_pages import capital_cities, distance_km
from demo_world.questions_phrasings import PHRASINGS
from demo_world.splits import is_held_out, stable_hash
from demo_world.titles import (
    city_titles,
    country_titles,
    county_titles,
    currency_titles,
    language_titles,
    state_titles,
    subdivision_titles,
)

Split = Literal["held-out entities", "held-out phrasings"]

SPLITS: Final[tuple[Split, ...]] = ("held-out entities", "held-out phrasings")
"""``held-out entities``: the entity is new, the phrasing known. ``held-out phrasings``: both are new."""

HELD_OUT_PHRASINGS_PERCENT: Final = 15.0
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

ThingT = TypeVar("ThingT")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, its answer as the page titled ``title`` writes it, and what is asked: ``city population``."""

    question: str
    answer: str
    title: str
    relation: str


@dataclass(frozen=True, slots=True)
class Fact:
    """What a question is made of: the page's title, the entity's name in a sentence, the relation (``city
    population``) and the answer (empty: none)."""

    title: str
    entity: str
    relation: str
    answer: str


@dataclass(frozen=True, slots=True)
class _Kind:
    """One kind of entity: its share of the questions, how many there are on a side, and a fact about the n-th."""

    share: float
    count: Callable[[bool], int]
    fact: Callable[[random.Random, int, bool], Fact]


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
    return tuple(
        phrasing
        for phrasing in PHRASINGS[relation]
        if is_held_out("question phrasing", phrasing, percent=HELD_OUT_PHRASINGS_PERCENT) is held_out
    )


def draw_fact(rng: random.Random, *, held_out: bool) -> Fact:
    """A fact with an answer about an entity of the wanted side; common kinds of question are drawn more often."""
    while True:
        kind = rng.choices(_KINDS, weights=[kind.share for kind in _KINDS])[0]
        fact = kind.fact(rng, rng.randrange(kind.count(held_out)), held_out)
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


def _side(things: Sequence[ThingT], kind: str, key: Callable[[ThingT], str], held_out: bool) -> tuple[ThingT, ...]:
    return tuple(thing for thing in things if is_held_out(kind, key(thing)) is held_out)


@cache
def _cities(held_out: bool) -> tuple[facts.City, ...]:
    titled = [city for city in facts.cities() if city.key in city_titles()]
    return _side(titled, "city", lambda city: city.name, held_out)


@cache
def _ranks() -> dict[str, int]:
    """Each city's place among its country's by inhabitants, by key."""
    seen: dict[str, int] = {}
    ranks = {}
    for city in facts.cities():
        ranks[city.key] = seen[city.country_code] = seen.get(city.country_code, 0) + 1
    return ranks


def _city_fact(rng: random.Random, number: int, held_out: bool) -> Fact:
    city = _cities(held_out)[number]
    title = city_titles()[city.key]
    country = facts.countries_by_code()[city.country_code]
    capital = capital_cities().get(city.country_code)
    relation = rng.choices(
        ("population", "place", "time zone", "currency", "rank", "distance", "coordinates"), (7, 4, 3, 2, 1, 1, 1)
    )[0]
    answer = ""
    match relation:
        case "population":
            answer = f"{city.population:,}"
        case "place":
            # A capital's page names no region.
            region = None if city is capital else city.region
            answer = f"{region}, {country.name}" if region else country.in_text
        case "time zone":
            answer = city.timezone
        case "currency":
            answer = country.currency_name or ""
        case "rank":
            rank = _ranks()[city.key]
            answer = f"{rank:,}" if rank > 1 else ""
        case "distance":
            answer = f"{round(distance_km(city, capital)):,}" if capital and city is not capital else ""
        case "coordinates":
            north = f"{abs(city.latitude):.2f}° {'N' if city.latitude >= 0 else 'S'}"
            answer = f"{north}, {abs(city.longitude):.2f}° {'E' if city.longitude >= 0 else 'W'}"
    return Fact(title, title, f"city {relation}", answer)


@cache
def _countries(held_out: bool) -> tuple[facts.Country, ...]:
    titled = [country for country in facts.countries() if country.code in country_titles()]
    return _side(titled, "country", lambda country: country.name, held_out)


def _country_fact(rng: random.Random, number: int, held_out: bool) -> Fact:
    country = _countries(held_out)[number]
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
def _states(held_out: bool) -> tuple[facts.State, ...]:
    return _side([state for state in facts.states() if state.code != "DC"], "state", lambda state: state.name, held_out)


@cache
def _largest_cities() -> dict[str, str]:
    """The name of each US state's most populous city, by the state's name."""
    largest: dict[str, str] = {}
    for city in facts.cities():
        if city.country_code == "US" and city.region is not None:
            largest.setdefault(city.region, city.name)
    return largest


def _state_fact(rng: random.Random, number: int, held_out: bool) -> Fact:
    state = _states(held_out)[number]
    relation, answer = rng.choice(
        [("largest city", _largest_cities().get(state.name, "")), ("postal abbreviation", state.code)]
    )
    title = state_titles()[state.code]
    return Fact(title, title, f"state {relation}", answer if state.name in _largest_cities() else "")


@cache
def _counties(held_out: bool) -> tuple[facts.County, ...]:
    titled = [county for county in facts.counties() if county.fips in county_titles()]
    return _side(titled, "county", lambda county: county.fips, held_out)


def _county_fact(_: random.Random, number: int, held_out: bool) -> Fact:
    county = _counties(held_out)[number]
    title = county_titles()[county.fips]
    return Fact(title, title, "county code", county.fips)  # the title itself names the state


@cache
def _subdivisions(held_out: bool) -> tuple[facts.Subdivision, ...]:
    titled = [part for part in facts.subdivisions() if part.code in subdivision_titles()]
    return _side(titled, "subdivision", lambda part: part.code, held_out)


def _subdivision_fact(rng: random.Random, number: int, held_out: bool) -> Fact:
    part = _subdivisions(held_out)[number]
    title = subdivision_titles()[part.code]
    relation, answer = rng.choice(
        [("country", facts.with_article(part.country)), ("kind", part.kind), ("code", part.code)]
    )
    # A title such as `Central (region, Ghana)` answers by itself.
    return Fact(title, title, f"subdivision {relation}", "" if "(" in title and relation != "code" else answer)


@cache
def _languages(held_out: bool) -> tuple[facts.Language, ...]:
    return _side(facts.languages(), "language", lambda language: language.name, held_out)


def _language_fact(rng: random.Random, number: int, held_out: bool) -> Fact:
    language = _languages(held_out)[number]
    relation, answer = rng.choice([("script", language.script or ""), ("code", language.code)])
    return Fact(language_titles()[language.code], language.name, f"language {relation}", answer)


@cache
def _currencies(held_out: bool) -> tuple[facts.Currency, ...]:
    titled = [currency for currency in facts.currencies() if currency.code in currency_titles()]
    return _side(titled, "currency", lambda currency: currency.name, held_out)


def _currency_fact(rng: random.Random, number: int, held_out: bool) -> Fact:
    currency = _currencies(held_out)[number]
    relation, answer = rng.choice([("code", currency.code), ("number", str(currency.number))])
    return Fact(currency_titles()[currency.code], f"the {currency.name}", f"currency {relation}", answer)


@cache
def _holidays(held_out: bool) -> tuple[facts.Holiday, ...]:
    """Holidays that fall on one day of the year in their country."""
    named: dict[tuple[str, str], list[facts.Holiday]] = {}
    for holiday in facts.public_holidays():
        named.setdefault((holiday.country, holiday.name), []).append(holiday)
    single = [days[0] for days in named.values() if len(days) == 1]
    return _side(single, "holiday", lambda holiday: f"{holiday.name}, {holiday.country}", held_out)


def _holiday_fact(_: random.Random, number: int, held_out: bool) -> Fact:
    holiday = _holidays(held_out)[number]
    entity = f"{holiday.name} in {facts.with_article(holiday.country)}"
    day = f"{_MONTHS[holiday.month - 1]} {holiday.day}"
    return Fact(f"Public holidays in {facts.with_article(holiday.country)}", entity, "holiday date", day)


_KINDS: Final = (
    _Kind(0.58, lambda held_out: len(_cities(held_out)), _city_fact),
    _Kind(0.20, lambda held_out: len(_countries(held_out)), _country_fact),
    _Kind(0.03, lambda held_out: len(_states(held_out)), _state_fact),
    _Kind(0.05, lambda held_out: len(_counties(held_out)), _county_fact),
    _Kind(0.05, lambda held_out: len(_subdivisions(held_out)), _subdivision_fact),
    _Kind(0.03, lambda held_out: len(_languages(held_out)), _language_fact),
    _Kind(0.03, lambda held_out: len(_currencies(held_out)), _currency_fact),
    _Kind(0.03, lambda held_out: len(_holidays(held_out)), _holiday_fact),
)
