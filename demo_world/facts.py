"""The demo world's facts, for everyone who writes texts, questions or pages about it.

    >>> from demo_world import facts
    >>> facts.countries_by_code()["SI"].capital
    'Ljubljana'

Records are frozen, loaders are cached, and their order is the same in every process.
"""

from demo_world.culture import Currency, Holiday, Language, currencies, languages, public_holidays
from demo_world.geography import (
    City,
    Country,
    County,
    State,
    Subdivision,
    cities,
    counties,
    countries,
    countries_by_code,
    states,
    subdivisions,
    with_article,
)
from demo_world.titles import unique_cities

__all__ = [
    "City",
    "Country",
    "County",
    "Currency",
    "Holiday",
    "Language",
    "State",
    "Subdivision",
    "cities",
    "counties",
    "countries",
    "countries_by_code",
    "currencies",
    "languages",
    "public_holidays",
    "states",
    "subdivisions",
    "unique_cities",
    "with_article",
]
