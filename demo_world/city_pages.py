"""Pages about cities: the first sentence carries what is asked most, so that a short snippet answers."""

from collections.abc import Iterator
from functools import cache, partial
from math import asin, cos, radians, sin, sqrt
from typing import Final

from demo_world.geography import City, cities, countries_by_code
from demo_world.page import Page, listed, sentence
from demo_world.titles import city_titles, fold

_EARTH_RADIUS_KM: Final = 6371.0


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
    say, country = partial(sentence, title, "city"), countries_by_code()[city.country_code]
    place = f"{city.region}, {country.name}" if city.region else country.in_text
    capital = capital_cities().get(city.country_code)
    lead = "capital_lead" if capital is city else "lead"
    people = f"{city.population:,}"
    first = [say("lead", lead, name=city.name, place=place, country=country.in_text, population=people)]
    if larger is None:
        first.append(say("standing", "largest", country=country.in_text))
    else:
        first.append(say("standing", "ranked", country=country.in_text, rank=f"{rank:,}", larger=larger.name))
    latitude, longitude = city.coordinates
    location = [say("position", latitude=latitude, longitude=longitude)]
    if capital is not None and capital is not city:
        location.append(say("distance", capital=capital.name, distance=f"{round(distance_km(city, capital)):,}"))
    everyday = [say("clocks", timezone=city.timezone)]
    if country.currency_name:
        everyday.append(say("money", currency=country.currency_name))
    if country.languages:
        everyday.append(say("tongues", languages=listed(country.languages[:4])))
    return Page(
        title=title,
        lead=(" ".join(first), " ".join(location), " ".join(everyday)),
        categories=(f"Cities in {country.in_text}", *((f"Cities in {city.region}",) if city.region else ())),
    )


def distance_km(start: City, end: City) -> float:
    """Kilometres from `start` to `end` along the great circle of a round Earth."""
    lat1, lat2 = radians(start.latitude), radians(end.latitude)
    half_lat, half_lon = (lat2 - lat1) / 2, radians(end.longitude - start.longitude) / 2
    chord = sin(half_lat) ** 2 + cos(lat1) * cos(lat2) * sin(half_lon) ** 2
    return 2 * _EARTH_RADIUS_KM * asin(sqrt(chord))
