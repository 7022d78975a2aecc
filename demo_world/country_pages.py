"""Pages about continents, countries and their parts."""

from collections.abc import Iterator
from functools import partial
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
    grouped,
    states,
    subdivisions,
    with_article,
)
from demo_world.page import Page, bullets, listed, sentence
from demo_world.titles import city_titles, country_titles, county_titles, state_titles, subdivision_titles

_LISTED_CITIES: Final = 10


def continent_pages() -> Iterator[Page]:
    """A page for each continent, by name."""
    for continent in continents():
        yield _continent(continent)


def country_pages() -> Iterator[Page]:
    """A page for each country, by name; Antarctica has its page as a continent."""
    homes = grouped(cities(), lambda city: city.country_code)
    parts = grouped(subdivisions(), lambda part: part.country_code)
    with_holidays = {holiday.country_code for holiday in public_holidays()}
    for country in countries():
        if country.code in country_titles():
            found = homes.get(country.code, []), parts.get(country.code, [])
            yield _country(country, *found, country.code in with_holidays)


def state_pages() -> Iterator[Page]:
    """A page for each US state that has cities in the gazetteer, by name."""
    homes = grouped((city for city in cities() if city.country_code == "US"), lambda city: city.region)
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
    members = [country for country in countries() if country.continent == continent.name]
    largest = min(members, key=lambda country: (-country.area_km2, country.name))
    return Page(
        title=continent.name,
        lead=(
            f"{continent.name} is a continent with a population of {continent.population:,}. "
            f"By area its largest country is {largest.in_text}.",
        ),
        sections=(("Countries and territories", bullets(country.name for country in members)),),
        categories=("Continents",),
    )


def _country(country: Country, homes: list[City], parts: list[Subdivision], has_holidays: bool) -> Page:
    say, name = partial(sentence, country.name, "country"), country.in_text
    known = "lead_with_capital" if country.capital else "lead"
    lead = [
        say(
            "lead", known if country.population else "uninhabited", name=_sentence_start(name),
            continent=country.continent, capital=country.capital, population=f"{country.population:,}",
        )
    ]  # fmt: skip
    # Most ask by that word, which a search would otherwise find on the continents' own pages only.
    lead.append(f"The continent of {name} is {country.continent}.")
    if country.area_km2:
        lead.append(say("area", area=f"{country.area_km2:,}"))
    sections: list[tuple[str, tuple[str, ...]]] = []
    if named := [city for city in homes if city.key in city_titles()][:_LISTED_CITIES]:
        sections.append(("Cities", ("The largest cities by inhabitants:", *_inhabitants(named))))
    if country.currency_name:
        money = say("currency", country=name, currency=country.currency_name, code=country.currency_code)
        sections.append(("Money", (money,)))
    if country.languages:
        sections.append(("Languages", (say("languages", country=name, languages=listed(country.languages)),)))
    neighbours = [with_article(neighbour) for neighbour in country.neighbours]
    borders = say("neighbours", country=name, neighbours=listed(neighbours)) if neighbours else None
    sections.append(("Neighbours", (borders or f"{name} has no neighbours by land.",)))
    codes = [_sentence_start(say("codes", country=name, code=country.code, code3=country.code3))]
    if country.tld:
        codes.append(f"Its internet domain is {country.tld}.")
    if country.phone_code:
        codes.append(f"Telephone numbers start with +{country.phone_code}.")
    sections.append(("Codes", (" ".join(codes),)))
    if top := [part.name for part in parts if part.parent is None]:
        counted = f"{name} has {len(top)} top-level subdivisions in ISO 3166-2, among them {listed(top[:12])}."
        sections.append(("Subdivisions", (counted,)))
    if has_holidays:
        sections.append(("Holidays", (f"See Public holidays in {name}.",)))
    return Page(
        title=country.name,
        lead=(" ".join(lead),),
        sections=tuple((heading, (_sentence_start(first), *rest)) for heading, (first, *rest) in sections),
        categories=(f"Countries and territories in {country.continent}",),
    )


def _inhabitants(homes: list[City]) -> tuple[str, ...]:
    return bullets(f"{city.name}: {city.population:,}" for city in homes)


def _state(state: State, homes: list[City]) -> Page:
    title = state_titles()[state.code]
    own_counties = [county.name for county in counties() if county.state == state.name]
    largest = homes[0]
    if state.code == "DC":
        lead = f"{state.name} is the federal district of the United States; its city is {largest.name}."
    else:
        people = f"{largest.population:,}"
        lead = sentence(title, "part", "lead", "state", name=state.name, city=largest.name, population=people)
    counted = f"{len(own_counties)} counties or equal units" if own_counties else "no counties"
    return Page(
        title=title,
        lead=(f"{lead} Its postal abbreviation is {state.code}.",),
        sections=(
            ("Cities", _inhabitants(homes[:_LISTED_CITIES])),
            ("Counties", (f"{state.name} has {counted}.",)),
        ),
        categories=("States of the United States",),
    )


def _county(county: County, title: str) -> Page:
    lead = sentence(title, "part", "lead", "county", name=county.name, state=county.state, fips=county.fips)
    return Page(title=title, lead=(lead,), categories=(f"Counties of {county.state}",))


def _subdivision(part: Subdivision, title: str) -> Page:
    country = with_article(part.country)
    say = partial(sentence, title, "part")
    lead = say("lead", "subdivision", name=part.name, country=country, kind=part.kind, code=part.code)
    lead = f"{lead} It is a part of {part.parent}." if part.parent else lead
    return Page(title=title, lead=(lead,), categories=(f"Subdivisions of {country}",))


def _sentence_start(text: str) -> str:
    return text[:1].upper() + text[1:]
