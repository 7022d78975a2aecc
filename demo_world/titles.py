"""Page titles: one for each thing in the world, each title once, told apart as an encyclopedia does.

A name that one thing has alone is its title. Where several share it, countries and US states keep it first,
then a city that dwarfs the others; the rest get what tells them apart: `Springfield, Illinois`, `Georgia
(U.S. state)`.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

from demo_world.culture import currencies, languages
from demo_world.geography import (
    City,
    cities,
    continents,
    counties,
    countries,
    grouped,
    states,
    subdivisions,
)

_DWARFS: Final = 8
"""A city this many times as populous as the next of its name is what people mean by the name alone."""


@cache
def country_titles() -> dict[str, str]:
    """Title by country code: the name, unless a continent has it (Antarctica)."""
    taken = {continent.name for continent in continents()}
    return {country.code: country.name for country in countries() if country.name not in taken}


@cache
def state_titles() -> dict[str, str]:
    """Title by US state code: `Georgia (U.S. state)` where a country or a major city has the name."""
    taken = {
        *(fold(name) for name in country_titles().values()),
        *(fold(city.name) for city in cities()[:500]),
    }
    return {state.code: f"{state.name} (U.S. state)" if fold(state.name) in taken else state.name for state in states()}


@cache
def city_titles() -> dict[str, str]:
    """Title by city key."""
    taken = {fold(continent.name) for continent in continents()}
    taken |= {fold(title) for title in (*country_titles().values(), *state_titles().values())}
    titles: dict[str, str] = {}
    for namesakes in grouped(cities(), lambda city: fold(city.name)).values():  # the most populous first
        first, *others = namesakes
        bare = fold(first.name) not in taken
        dwarfs = not others or first.population >= _DWARFS * others[0].population
        for city in namesakes:
            alone = city is first and bare and dwarfs
            titles[city.key] = city.name if alone else _placed(city, namesakes)
    return _without_repeats(titles)


@cache
def subdivision_titles() -> dict[str, str]:
    """Title by ISO 3166-2 code, of those not named like a city of their country (which has its own page)."""
    own_cities = {(city.country_code, fold(city.name)) for city in cities()}
    kept = [part for part in subdivisions() if (part.country_code, fold(part.name)) not in own_cities]
    names = Counter(fold(part.name) for part in kept)
    taken = {
        *(fold(city.name) for city in cities()),
        *(fold(name) for name in country_titles().values()),
        *(fold(state.name) for state in states()),
    }
    titles: dict[str, str] = {}
    for part in kept:
        folded = fold(part.name)
        alone = names[folded] == 1 and folded not in taken
        titles[part.code] = part.name if alone else f"{part.name} ({part.kind}, {part.country})"
    return _without_repeats(titles)


@cache
def county_titles() -> dict[str, str]:
    """Title by federal county code: `Orange County, California`."""
    return _without_repeats({county.fips: f"{county.name}, {county.state}" for county in counties()})


@cache
def language_titles() -> dict[str, str]:
    """Title by language code: `Slovenian language`."""
    return {language.code: f"{language.name} language" for language in languages()}


@cache
def currency_titles() -> dict[str, str]:
    """Title by currency code; names are unique among currencies."""
    return _without_repeats({currency.code: currency.name for currency in currencies()})


@cache
def unique_cities() -> tuple[City, ...]:
    """Cities whose bare name sets them apart from everything else here, the most populous first.

    Such a name is the page's whole title and nobody else's, in ASCII letters, spaces and hyphens: what a
    language model's texts may use without a second meaning.
    """
    shared = _shared_names()
    titles = city_titles()
    return tuple(
        city
        for city in cities()
        if titles.get(city.key) == city.name and shared[fold(city.name)] == 1 and _is_simple(city.name)
    )


def _shared_names() -> Counter[str]:
    """How many things of the encyclopedia bear each folded name, whatever their titles add to it."""
    bearers: list[str] = [*(continent.name for continent in continents())]
    bearers += country_titles().values()
    bearers += (state.name for state in states())
    bearers += (city.name for city in cities() if city.key in city_titles())
    bearers += (part.name for part in subdivisions() if part.code in subdivision_titles())
    bearers += (language.name for language in languages())
    bearers += currency_titles().values()
    return Counter(fold(name) for name in bearers)


def _placed(city: City, namesakes: Sequence[City]) -> str:
    """The title that says where the city lies: by its region where its country has several of its name."""
    compatriots = [other for other in namesakes if other.country_code == city.country_code]
    by_region = city.region is not None and (city.country_code == "US" or len(compatriots) > 1)
    return f"{city.name}, {city.region if by_region else city.country}"


def _without_repeats(titles: dict[str, str]) -> dict[str, str]:
    """`titles` without those that an earlier key has already, accents and case aside."""
    seen: set[str] = set()
    kept = {}
    for key, title in titles.items():
        if (folded := fold(title)) not in seen:
            seen.add(folded)
            kept[key] = title
    return kept


def fold(name: str) -> str:
    """`name` in lower case without accents, as a search engine and a hurried reader see it."""
    decomposed = unicodedata.normalize("NFKD", name)
    return "".join(char for char in decomposed if not unicodedata.combining(char)).casefold()


def _is_simple(name: str) -> bool:
    return all(char.isascii() and (char.isalpha() or char in " -") for char in name)
