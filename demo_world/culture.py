"""Languages, currencies and public holidays as typed records.

From CLDR (`babel`), ISO 639 and 4217 (`pycountry`) and `holidays`.
"""

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final

import holidays as holidays_package
import pycountry
from babel import Locale
from babel.core import UnknownLocaleError, get_global
from babel.numbers import get_currency_name, get_currency_precision, get_currency_symbol

from demo_world.geography import countries, countries_by_code, grouped, language_name

_ENGLISH: Final = Locale("en")
MONTHS: Final = tuple(str(name) for name in _ENGLISH.months["format"]["wide"].values())
"""The English names of the months, January first."""
_HOLIDAY_YEARS: Final = (2023, 2024, 2025, 2026)
"""A holiday on the same day of the same month in all of these is taken to have a fixed date."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language with an ISO 639 code and an English name.

    `countries` are the English names of those where the gazetteer lists it as spoken; `native_name` is what
    it calls itself and `script` the English name of its usual writing system, both None where CLDR does not
    say; `right_to_left` is how it is written.
    """

    code: str
    name: str
    countries: tuple[str, ...]
    native_name: str | None
    script: str | None
    right_to_left: bool


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency in use somewhere; `decimals` is the number of digits of its minor unit."""

    code: str
    number: str
    name: str
    plural: str
    symbol: str
    decimals: int
    countries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Holiday:
    """A public holiday that has the same date every year, with its English name."""

    name: str
    country_code: str
    country: str
    month: int
    day: int


@cache
def languages() -> tuple[Language, ...]:
    """Every language with a two-letter code or spoken in some country, by name; names are unique."""
    speakers: dict[str, list[str]] = {}
    for country in countries():
        for code in country.language_codes:
            speakers.setdefault(code, []).append(country.name)
    codes = {row.alpha_2 for row in pycountry.languages if hasattr(row, "alpha_2")} | speakers.keys()
    by_name: dict[str, Language] = {}
    for code in sorted(codes, key=lambda code: (len(code), code)):
        name = language_name(code)
        if name is not None and "(" not in name:
            by_name.setdefault(name, _language(code, name, tuple(speakers.get(code, ()))))
    return tuple(by_name[name] for name in sorted(by_name))


@cache
def currencies() -> tuple[Currency, ...]:
    """Every currency that a country of the gazetteer uses, by code."""
    users = grouped(countries(), lambda country: country.currency_code or "")
    rows = {code: pycountry.currencies.get(alpha_3=code) for code in sorted(users) if code}
    return tuple(
        Currency(
            code=code,
            number=row.numeric,
            name=get_currency_name(code, locale=_ENGLISH),
            plural=get_currency_name(code, count=2, locale=_ENGLISH),
            symbol=get_currency_symbol(code, locale=_ENGLISH),
            decimals=get_currency_precision(code),
            countries=tuple(country.name for country in users[code]),
        )
        for code, row in rows.items()
        if row is not None
    )


@cache
def public_holidays() -> tuple[Holiday, ...]:
    """Public holidays of fixed date that the package names in English, by country code and date."""
    localized = holidays_package.list_localized_countries()
    supported = holidays_package.list_supported_countries(include_aliases=False)
    found: set[Holiday] = set()
    for code in sorted(supported.keys() & countries_by_code().keys()):
        tongues = [tongue for tongue in ("en_US", "en_GB") if tongue in localized.get(code, ())]
        if code in localized and not tongues:
            continue
        calendar = holidays_package.country_holidays(
            code, years=_HOLIDAY_YEARS, observed=False, language=tongues[0] if tongues else None
        )
        found.update(_fixed(calendar, code))
    return tuple(sorted(found, key=lambda day: (day.country_code, day.month, day.day, day.name)))


def _language(code: str, name: str, spoken_in: tuple[str, ...]) -> Language:
    try:
        locale = Locale.parse(code)
    except (UnknownLocaleError, ValueError):
        return Language(code, name, spoken_in, None, None, False)
    return Language(
        code=code,
        name=name,
        countries=spoken_in,
        native_name=locale.languages.get(code),
        script=_script_name(code),
        right_to_left=locale.text_direction == "rtl",
    )


def _script_name(code: str) -> str | None:
    """The ISO 15924 name of the script that CLDR takes to be the usual one, without its remarks."""
    likely = get_global("likely_subtags").get(code, "")
    script = next((part for part in likely.split("_") if len(part) == 4), None)
    row = pycountry.scripts.get(alpha_4=script) if script else None
    return row.name.split(" (")[0] if row is not None else None


def _fixed(calendar: dict[date, str], code: str) -> set[Holiday]:
    years: dict[tuple[str, int, int], set[int]] = {}
    for day in calendar:
        for name in calendar[day].split("; "):
            years.setdefault((name, day.month, day.day), set()).add(day.year)
    country = countries_by_code()[code].name
    return {
        Holiday(name, code, country, month, day)
        for (name, month, day), seen in years.items()
        if len(seen) == len(_HOLIDAY_YEARS) and name.isascii()
    }
