"""Pages about continents, countries and their parts."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from demo_world.culture import public_holidays
from demo_world.geography import (
    City,
    Continent,
    Country,
    County,
    State,
    Subdivision,
    cities,
    continents,
    counties,
    countries,
    states,
    subdivisions,
    with_article,
)
from demo_world.page import PATTERNS, Page, bullets, listed, phrase
from demo_world.titles import city_titles, country_titles, county_titles, state_titles, subdivision_titles

_LISTED_CITIES: Final = 10

_SAID: Final = PATTERNS["country"]
_PART: Final = PATTERNS["part"]


def continent_pages() -> Iterator[Page]:
    """A page for each continent, by name."""
    for continent in continents():
        yield _continent(continent)


def country_pages() -> Iterator[Page]:
    """A page for each country, by name; Antarctica has its page as a continent."""
    titles = country_titles()
    homes: dict[str, list[City]] = {}
    for city in cities():
        homes.setdefault(city.country_code, []).append(city)
    parts = {code: list(rows) for code, rows in groupby(subdivisions(), lambda part: part.country_code)}
    holidays = {code: list(days) for code, days in groupby(public_holidays(), lambda day: day.country_code)}
    for country in countries():
        if country.code not in titles:
            continue
        sections = [
            ("Cities", _largest_cities(homes.get(country.code, []))),
            ("Money", _money(country)),
            ("Languages", _languages(country)),
            ("Neighbours", _borders(country)),
            ("Codes", (_codes(country),)),
            ("Subdivisions", _parts(country, parts.get(country.code, []))),
            ("Holidays", (f"See Public holidays in {country.in_text}.",) if country.code in holidays else ()),
        ]
        yield Page(
            title=country.name,
            lead=(_country_lead(country),),
            sections=tuple((heading, lines) for heading, lines in sections if lines),
            categories=(f"Countries and territories in {country.continent}",),
        )


def state_pages() -> Iterator[Page]:
    """A page for each US state that has cities in the gazetteer, by name."""
    homes: dict[str, list[City]] = {}
    for city in cities():
        if city.country_code == "US" and city.region is not None:
            homes.setdefault(city.region, []).append(city)
    for state in states():
        if state.name in homes:
            yield _state(state, homes[state.name])


def county_pages() -> Iterator[Page]:
    """A page for each county of a US state, by federal code."""
    titles = county_titles()
    for county in counties():
        if county.fips in titles:
            yield _county(county, titles[county.fips])


def subdivision_pages() -> Iterator[Page]:
    """A page for each subdivision that has a title, by code."""
    titles = subdivision_titles()
    for part in subdivisions():
        if part.code in titles:
            yield _subdivision(part, titles[part.code])


def _continent(continent: Continent) -> Page:
    members = [country.name for country in countries() if country.continent == continent.name]
    largest = sorted(
        (country for country in countries() if country.continent == continent.name),
        key=lambda country: (-country.area_km2, country.name),
    )
    return Page(
        title=continent.name,
        lead=(
            f"{continent.name} is a continent with a population of {continent.population:,}. "
            f"By area its largest country is {largest[0].in_text}.",
        ),
        sections=(("Countries and territories", bullets(members)),),
        categories=("Continents",),
    )


def _country_lead(country: Country) -> str:
    known = "lead_with_capital" if country.capital else "lead"
    lead = phrase(
        country.name,
        "lead",
        _SAID[known if country.population else "uninhabited"],
        name=_sentence_start(country.in_text),
        continent=country.continent,
        capital=country.capital,
        population=f"{country.population:,}",
    )
    if not country.area_km2:
        return lead
    area = phrase(country.name, "area", _SAID["area"], area=f"{country.area_km2:,}")
    return f"{lead} {area}"


def _largest_cities(homes: list[City]) -> tuple[str, ...]:
    titles = city_titles()
    named = [city for city in homes if city.key in titles][:_LISTED_CITIES]
    if not named:
        return ()
    return ("The largest cities by inhabitants:", *bullets(f"{city.name}: {city.population:,}" for city in named))


def _money(country: Country) -> tuple[str, ...]:
    if not country.currency_name:
        return ()
    sentence = phrase(
        country.name,
        "currency",
        _SAID["currency"],
        country=country.in_text,
        currency=country.currency_name,
        code=country.currency_code,
    )
    return (_sentence_start(sentence),)


def _languages(country: Country) -> tuple[str, ...]:
    if not country.languages:
        return ()
    values = {"country": country.in_text, "languages": listed(country.languages)}
    return (_sentence_start(phrase(country.name, "languages", _SAID["languages"], **values)),)


def _borders(country: Country) -> tuple[str, ...]:
    if not country.neighbours:
        return (_sentence_start(f"{country.in_text} has no neighbours by land."),)
    neighbours = listed([with_article(name) for name in country.neighbours])
    sentence = phrase(country.name, "neighbours", _SAID["neighbours"], country=country.in_text, neighbours=neighbours)
    return (_sentence_start(sentence),)


def _codes(country: Country) -> str:
    sentences = [
        phrase(country.name, "codes", _SAID["codes"], country=country.in_text, code=country.code, code3=country.code3)
    ]
    if country.tld:
        sentences.append(f"Its internet domain is {country.tld}.")
    if country.phone_code:
        sentences.append(f"Telephone numbers start with +{country.phone_code}.")
    return " ".join(_sentence_start(sentence) for sentence in sentences)


def _parts(country: Country, parts: list[Subdivision]) -> tuple[str, ...]:
    if not parts:
        return ()
    names = [part.name for part in parts if part.parent is None]
    counted = f"{_sentence_start(country.in_text)} has {len(names)} top-level subdivisions in ISO 3166-2"
    return (f"{counted}, among them {listed(names[:12])}.",) if names else ()


def _state(state: State, homes: list[City]) -> Page:
    title = state_titles()[state.code]
    own_counties = [county.name for county in counties() if county.state == state.name]
    largest = homes[0]
    lead = phrase(
        title, "lead", _PART["state"], name=state.name, city=largest.name, population=f"{largest.population:,}"
    )
    if state.code == "DC":
        lead = f"{state.name} is the federal district of the United States; its city is {largest.name}."
    return Page(
        title=title,
        lead=(f"{lead} Its postal abbreviation is {state.code}.",),
        sections=(
            ("Cities", bullets(f"{city.name}: {city.population:,}" for city in homes[:_LISTED_CITIES])),
            ("Counties", (f"{state.name} has {len(own_counties)} counties or equal units.",))
            if own_counties
            else ("Counties", (f"{state.name} has no counties.",)),
        ),
        categories=("States of the United States",),
    )


def _county(county: County, title: str) -> Page:
    lead = phrase(title, "lead", _PART["county"], name=county.name, state=county.state, fips=county.fips)
    return Page(title=title, lead=(lead,), categories=(f"Counties of {county.state}",))


def _subdivision(part: Subdivision, title: str) -> Page:
    country = with_article(part.country)
    lead = phrase(title, "lead", _PART["subdivision"], name=part.name, country=country, kind=part.kind, code=part.code)
    lead = f"{lead} It is a part of {part.parent}." if part.parent else lead
    return Page(title=title, lead=(lead,), categories=(f"Subdivisions of {country}",))


def _sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:]
