"""What stands in a phrase's slots: values of no language, and how CLDR shows each in a given one."""

from __future__ import annotations

import calendar
import datetime
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pycountry
from babel import Locale
from babel.dates import format_date, format_skeleton, format_time
from babel.lists import format_list
from babel.numbers import format_currency, format_decimal, format_percent, get_currency_name
from babel.units import format_unit

from demo_world.tables import read

_MOST_OF_A_UNIT: Final = 999
_BRACKETS: Final = "()（）["


@dataclass(frozen=True, slots=True)
class _ValueTable:
    currencies: tuple[str, ...]
    languages: tuple[str, ...]
    units: Mapping[str, tuple[str, ...]]
    most: Mapping[str, int]


_TABLE: Final = read("values", _ValueTable)


@dataclass(frozen=True)
class Kind:
    """A kind of slot: how a value is drawn and how it is shown."""

    draw: Callable[[random.Random], Any]
    show: Callable[[Any, Locale], str]


def _countries() -> tuple[str, ...]:
    """ISO 3166 countries whose English name needs no brackets: names that a sentence can carry."""
    names = Locale.parse("en").territories
    codes = sorted(country.alpha_2 for country in pycountry.countries)
    return tuple(code for code in codes if code in names and not set(names[code]) & set(_BRACKETS))


_COUNTRIES: Final = _countries()
_FIRST_DAY: Final = datetime.date(1950, 1, 1)
_DAYS: Final = (datetime.date(2050, 1, 1) - _FIRST_DAY).days
_MOST_IN_A_LIST: Final = 3


def _any_of(names: Sequence[str]) -> Callable[[random.Random], str]:
    return lambda rng: rng.choice(names)


def _some_of(names: Sequence[str]) -> Callable[[random.Random], tuple[str, ...]]:
    return lambda rng: tuple(rng.sample(names, rng.randint(2, _MOST_IN_A_LIST)))


def _number(rng: random.Random, most: int = 999_999) -> int:
    """Every length of number is equally likely, so that short ones are not rare. Two is the least: several patterns
    want their number in the plural."""
    digits = rng.randint(1, len(str(most)))
    return rng.randint(max(2, 10 ** (digits - 1)), min(most, 10**digits - 1))


def _quantity(kind: str) -> Kind:
    units, most = _TABLE.units[kind], _TABLE.most.get(kind, _MOST_OF_A_UNIT)
    return Kind(lambda rng: (_number(rng, most), rng.choice(units)), _show_quantity)


def _show_quantity(value: tuple[int, str], locale: Locale) -> str:
    number, unit = value
    for length in ("long", "short", "narrow"):
        # Where a language's long and short form are one, babel knows it by one length only, and writes the unit's
        # own key for the others.
        text = format_unit(number, unit, length, locale=locale)
        if unit not in text:
            return text
    raise LookupError(f"babel knows no {unit} in {locale}")


def _show_money(value: tuple[int, str], locale: Locale) -> str:
    number, currency = value
    return format_currency(number, currency, "#,##0", locale, currency_digits=False, format_type="name")


def _show_list(show: Callable[[str, Locale], str]) -> Callable[[Sequence[str], Locale], str]:
    return lambda codes, locale: format_list([show(code, locale) for code in codes], "standard", locale)


def _show_date(style: Literal["long", "full"]) -> Callable[[datetime.date, Locale], str]:
    def show(day: datetime.date, locale: Locale) -> str:
        text = format_date(day, style, locale)
        # French says the first of a month as an ordinal; CLDR writes the plain number.
        return re.sub(r"\b1 ", "1er ", text, count=1) if locale.language == "fr" and day.day == 1 else text

    return show


def _day(rng: random.Random) -> datetime.date:
    return _FIRST_DAY + datetime.timedelta(days=rng.randrange(_DAYS))


def _time(rng: random.Random) -> datetime.time:
    # From two: several languages put one o'clock in the singular.
    return datetime.time(rng.randint(2, 23), rng.randrange(60))


_COUNTRY: Final = Kind(_any_of(_COUNTRIES), lambda code, locale: str(locale.territories[code]))
_LANGUAGE: Final = Kind(_any_of(_TABLE.languages), lambda code, locale: str(locale.languages[code]))
KINDS: Final[Mapping[str, Kind]] = {
    "country": _COUNTRY,
    "countries": Kind(_some_of(_COUNTRIES), _show_list(_COUNTRY.show)),
    "language": _LANGUAGE,
    "languages": Kind(_some_of(_TABLE.languages), _show_list(_LANGUAGE.show)),
    "currency": Kind(_any_of(_TABLE.currencies), lambda code, locale: get_currency_name(code, locale=locale)),
    "money": Kind(lambda rng: (_number(rng, 99_999), rng.choice(_TABLE.currencies)), _show_money),
    "number": Kind(_number, lambda value, locale: format_decimal(value, locale=locale)),
    "year": Kind(lambda rng: rng.randint(1950, 2049), lambda value, _: str(value)),
    "percent": Kind(lambda rng: rng.randint(2, 99), lambda value, locale: format_percent(value / 100, locale=locale)),
    "date": Kind(_day, _show_date("long")),
    "fulldate": Kind(_day, _show_date("full")),
    "month": Kind(
        lambda rng: (rng.randint(1950, 2049), rng.randint(1, 12)),
        lambda month, locale: format_skeleton("yMMMM", datetime.date(month[0], month[1], 1), locale=locale),
    ),
    "monthname": Kind(
        lambda rng: rng.randint(1, 12), lambda month, locale: str(locale.months["stand-alone"]["wide"][month])
    ),
    "weekday": Kind(lambda rng: rng.randrange(7), lambda day, locale: str(locale.days["stand-alone"]["wide"][day])),
    "time": Kind(_time, lambda time, locale: format_time(time, "short", locale=locale)),
    **{kind: _quantity(kind) for kind in _TABLE.units},
}
"""By its name in patterns, every kind of slot."""

NAMES: Final[Mapping[str, Sequence[Any]]] = {
    "country": _COUNTRIES,
    "language": _TABLE.languages,
    "currency": _TABLE.currencies,
    "weekday": range(len(calendar.day_name)),
    "monthname": range(1, 13),
}
"""The kinds that are names, with all their values."""
