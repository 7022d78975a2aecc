"""Pages about cities: the first sentence carries what is asked most, so that a short snippet answers."""

from collections.abc import Iterator
from functools import cache
from math import asin, cos, radians, sin, sqrt
from typing import Final

from demo_world.geography import City, Country, cities, countries_by_code
from demo_world.page import Page, listed, phrase
from demo_world.titles import city_titles, fold

_EARTH_RADIUS_KM: Final = 6371.0

# Every pattern keeps the word that readers ask with (population, coordinates, time zone, ...), and no other sentence
# of the encyclopedia uses it idly, so that a lexical search finds the sentence that answers.
_LEAD: Final = (
    "{name} is a city in {place} with a population of {population}.",
    "{name} is a city in {place} that has a population of {population}.",
    "{name} is a city in {place} whose population is {population}.",
    "{name} is a city in {place}; its population is {population}.",
)
_CAPITAL_LEAD: Final = (
    "{name} is the capital of {country} and has a population of {population}.",
    "{name} is the capital city of {country}, with a population of {population}.",
    "{name} is the capital of {country}, a city with a population of {population}.",
)
_LARGEST: Final = (
    "No other city in {country} has more inhabitants.",
    "It is the largest city in {country}.",
    "Among the cities of {country} it comes first by number of inhabitants.",
)
_RANKED: Final = (
    "It ranks number {rank} among the cities of {country} by inhabitants, next after {larger}.",
    "By inhabitants it comes right after {larger}, as number {rank} in {country}.",
    "In {country}, {larger} comes just before it by inhabitants, which makes it number {rank}.",
)
_POSITION: Final = (
    "The city has the coordinates {latitude}, {longitude}.",
    "Its coordinates are {latitude}, {longitude}.",
    "On the map it is found at the coordinates {latitude}, {longitude}.",
)
_DISTANCE: Final = (
    "From here to {capital} it is about {distance} kilometres as the crow flies.",
    "The straight line to {capital} measures about {distance} kilometres.",
)
_CLOCKS: Final = (
    "Clocks follow the time zone {timezone}.",
    "Its time zone is {timezone}.",
    "The local time is that of the time zone {timezone}.",
)
_MONEY: Final = (
    "The currency is the {currency}.",
    "Bills are paid in a currency called {currency}.",
    "Prices are given in the currency {currency}.",
)
_TONGUES: Final = (
    "Languages heard in this part of the world include {languages}.",
    "Among the languages of the surrounding land: {languages}.",
)


def city_pages() -> Iterator[Page]:
    """A page for every city that has a title, the most populous first."""
    titles = city_titles()
    seen: dict[str, int] = {}
    larger: dict[str, City] = {}
    for city in cities():
        rank = seen[city.country_code] = seen.get(city.country_code, 0) + 1
        if city.key in titles:
            yield _page(city, titles[city.key], rank, larger.get(city.country_code))
        larger[city.country_code] = city


@cache
def capital_cities() -> dict[str, City]:
    """The city record of each country's capital, by country code, where the gazetteer has both."""
    found: dict[str, City] = {}
    for city in cities():
        capital = countries_by_code()[city.country_code].capital
        if capital is not None and fold(capital) == fold(city.name):
            found.setdefault(city.country_code, city)
    return found


def _page(city: City, title: str, rank: int, larger: City | None) -> Page:
    country = countries_by_code()[city.country_code]
    place = f"{city.region}, {country.name}" if city.region else country.in_text
    is_capital = capital_cities().get(city.country_code) is city
    lead = phrase(
        title,
        "lead",
        _CAPITAL_LEAD if is_capital else _LEAD,
        name=city.name,
        place=place,
        country=country.in_text,
        population=f"{city.population:,}",
    )
    if larger is None:
        standing = phrase(title, "standing", _LARGEST, country=country.in_text)
    else:
        standing = phrase(title, "standing", _RANKED, country=country.in_text, rank=f"{rank:,}", larger=larger.name)
    return Page(
        title=title,
        lead=(f"{lead} {standing}", _location(city, title), _everyday(city, country, title)),
        categories=(f"Cities in {country.in_text}", *((f"Cities in {city.region}",) if city.region else ())),
    )


def _location(city: City, title: str) -> str:
    sentences = [
        phrase(
            title,
            "position",
            _POSITION,
            latitude=f"{abs(city.latitude):.2f}° {'N' if city.latitude >= 0 else 'S'}",
            longitude=f"{abs(city.longitude):.2f}° {'E' if city.longitude >= 0 else 'W'}",
        )
    ]
    capital = capital_cities().get(city.country_code)
    if capital is not None and capital is not city:
        distance = f"{round(distance_km(city, capital)):,}"
        sentences.append(phrase(title, "distance", _DISTANCE, capital=capital.name, distance=distance))
    return " ".join(sentences)


def _everyday(city: City, country: Country, title: str) -> str:
    sentences = [phrase(title, "clocks", _CLOCKS, timezone=city.timezone)]
    if country.currency_name:
        sentences.append(phrase(title, "money", _MONEY, currency=country.currency_name))
    if country.languages:
        sentences.append(phrase(title, "tongues", _TONGUES, languages=listed(country.languages[:4])))
    return " ".join(sentences)


def distance_km(start: City, end: City) -> float:
    """Kilometres from `start` to `end` along the great circle of a round Earth."""
    lat1, lat2 = radians(start.latitude), radians(end.latitude)
    half_lat, half_lon = (lat2 - lat1) / 2, radians(end.longitude - start.longitude) / 2
    chord = sin(half_lat) ** 2 + cos(lat1) * cos(lat2) * sin(half_lon) ** 2
    return 2 * _EARTH_RADIUS_KM * asin(sqrt(chord))
