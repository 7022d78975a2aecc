"""Pages about cities: the first sentence carries what is asked most, so that a short snippet answers."""

from collections.abc import Iterator
from functools import cache
from math import asin, cos, radians, sin, sqrt
from typing import Final

from demo_world.geography import City, Country, cities, countries_by_code
from demo_world.page import PATTERNS, Page, listed, phrase
from demo_world.titles import city_titles, fold

_EARTH_RADIUS_KM: Final = 6371.0

_SAID: Final = PATTERNS["city"]


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
        _SAID["capital_lead" if is_capital else "lead"],
        name=city.name,
        place=place,
        country=country.in_text,
        population=f"{city.population:,}",
    )
    if larger is None:
        standing = phrase(title, "standing", _SAID["largest"], country=country.in_text)
    else:
        standing = phrase(
            title, "standing", _SAID["ranked"], country=country.in_text, rank=f"{rank:,}", larger=larger.name
        )
    return Page(
        title=title,
        lead=(f"{lead} {standing}", _location(city, title), _everyday(city, country, title)),
        categories=(f"Cities in {country.in_text}", *((f"Cities in {city.region}",) if city.region else ())),
    )


def _location(city: City, title: str) -> str:
    latitude, longitude = city.coordinates
    sentences = [phrase(title, "position", _SAID["position"], latitude=latitude, longitude=longitude)]
    capital = capital_cities().get(city.country_code)
    if capital is not None and capital is not city:
        distance = f"{round(distance_km(city, capital)):,}"
        sentences.append(phrase(title, "distance", _SAID["distance"], capital=capital.name, distance=distance))
    return " ".join(sentences)


def _everyday(city: City, country: Country, title: str) -> str:
    sentences = [phrase(title, "clocks", _SAID["clocks"], timezone=city.timezone)]
    if country.currency_name:
        sentences.append(phrase(title, "money", _SAID["money"], currency=country.currency_name))
    if country.languages:
        sentences.append(phrase(title, "tongues", _SAID["tongues"], languages=listed(country.languages[:4])))
    return " ".join(sentences)


def distance_km(start: City, end: City) -> float:
    """Kilometres from `start` to `end` along the great circle of a round Earth."""
    lat1, lat2 = radians(start.latitude), radians(end.latitude)
    half_lat, half_lon = (lat2 - lat1) / 2, radians(end.longitude - start.longitude) / 2
    chord = sin(half_lat) ** 2 + cos(lat1) * cos(lat2) * sin(half_lon) ** 2
    return 2 * _EARTH_RADIUS_KM * asin(sqrt(chord))
