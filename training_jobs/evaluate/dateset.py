"""Dateset, generated again by the templates and sizes of the paper's appendix D (table 11).

Each of 500 current dates gets a past and a future date within four years. The table gives how many questions each
template has, not which; here they are a seeded sample of all that the dates can fill it with. Holidays are the federal
ones of the United States. Counts of weeks, months and years are whole ones, rounded down.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import holidays

from demo_world.splits import stable_hash
from demo_world.texts.calendar import full_date, long_date
from training_jobs.evaluate.example import Example

CURRENT_DATES: Final = 500
SIZES: Final[Mapping[str, int]] = {
    "days to a date": 400,
    "a time ago": 800,
    "in some days": 800,
    "weekday of a date": 400,
    "near today": 4_000,
    "a holiday's day": 1_800,
    "time to a holiday": 1_200,
}
"""Questions of each template, in the order of the table: 9,400."""

FIRST_DAY: Final = dt.date(2010, 1, 1)
LAST_DAY: Final = dt.date(2024, 12, 31)
_FOUR_YEARS: Final = 4 * 365

_Part = Callable[[dt.date], str]
_PARTS: Final[Mapping[str, _Part]] = {
    "day of the week": lambda day: full_date(day).split(",")[0],
    "day of the month": lambda day: str(day.day),
    "month": lambda day: long_date(day).split(" ")[0],
    "year": lambda day: str(day.year),
}
_UNITS: Final = ("day", "week", "month", "year")
_NEAR: Final = {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}


@dataclass(frozen=True, slots=True)
class _Dates:
    today: dt.date
    past: dt.date
    future: dt.date


def dateset(seed: int = 0) -> tuple[Example, ...]:
    """The 9,400 questions of ``seed``; ``split`` is the template, ``date`` the current date."""
    rng = random.Random(stable_hash("dateset", str(seed)))
    span = (LAST_DAY - FIRST_DAY).days + 1
    drawn = []
    for offset in sorted(rng.sample(range(span), CURRENT_DATES)):
        today = FIRST_DAY + dt.timedelta(days=offset)
        ago, ahead = (dt.timedelta(days=rng.randint(1, _FOUR_YEARS)) for _ in range(2))
        drawn.append(_Dates(today, today - ago, today + ahead))
    found = []
    for template, size in SIZES.items():
        filled = [one for dates in drawn for one in _TEMPLATES[template](dates)]
        for number in sorted(rng.sample(range(len(filled)), size)):
            today, question, answer = filled[number]
            name = f"{template.replace(' ', '-')}-{number}"
            found.append(Example(name, question, (answer,), date=today, split=template, calls=(("Calendar", ""),)))
    return tuple(found)


_Filled = Iterator[tuple[dt.date, str, str]]


def _days_to_a_date(dates: _Dates) -> _Filled:
    past, future = long_date(dates.past), long_date(dates.future)
    yield dates.today, f"How many days ago was {past}?", str((dates.today - dates.past).days)
    yield dates.today, f"How many days are there until {future}?", str((dates.future - dates.today).days)


def _a_time_ago(dates: _Dates) -> _Filled:
    for unit in _UNITS:
        count = whole_units(dates.past, dates.today, unit)
        for what, part in _PARTS.items():
            if count:
                then = _before(dates.today, count, unit)
                yield dates.today, f"What {what} was it {_counted(count, unit)} ago?", part(then)


def _in_some_days(dates: _Dates) -> _Filled:
    count = (dates.future - dates.today).days
    for what, part in _PARTS.items():
        yield dates.today, f"What {what} will it be in {_counted(count, 'day')}?", part(dates.future)


def _weekday_of_a_date(dates: _Dates) -> _Filled:
    weekday = _PARTS["day of the week"]
    yield dates.today, f"What day of the week was it on {long_date(dates.past)}?", weekday(dates.past)
    yield dates.today, f"What day of the week is it on {long_date(dates.future)}?", weekday(dates.future)


def _near_today(dates: _Dates) -> _Filled:
    for near, offset in _NEAR.items():
        for what, part in _PARTS.items():
            verb = "was" if offset < 0 else "is"
            yield dates.today, f"What {what} {verb} it {near}?", part(dates.today + dt.timedelta(days=offset))


def _a_holidays_day(dates: _Dates) -> _Filled:
    for name, day in federal_holidays(dates.today.year):
        for what, part in _PARTS.items():
            if what != "year":
                verb = "was" if day < dates.today else "is"
                yield dates.today, f"What {what} {verb} {name} this year?", part(day)


def _time_to_a_holiday(dates: _Dates) -> _Filled:
    for name, day in federal_holidays(dates.today.year):
        first, last = sorted((day, dates.today))
        asked = "ago was" if day < dates.today else "are there until"
        for unit in _UNITS:
            answer = str(whole_units(first, last, unit))
            yield dates.today, f"How many {unit}s {asked} {name} this year?", answer


_TEMPLATES: Final[Mapping[str, Callable[[_Dates], _Filled]]] = dict(
    zip(
        SIZES,
        (
            _days_to_a_date, _a_time_ago, _in_some_days, _weekday_of_a_date, _near_today, _a_holidays_day,
            _time_to_a_holiday,
        ),
        strict=True,
    )
)  # fmt: skip


@cache
def federal_holidays(year: int) -> tuple[tuple[str, dt.date], ...]:
    """Name and day of the federal holidays of the United States in ``year``, not moved for weekends."""
    found = holidays.country_holidays("US", years=year, observed=False)
    return tuple((name, day) for day in sorted(found) for name in found.get_list(day))


def whole_units(first: dt.date, last: dt.date, unit: str) -> int:
    """How many whole days, weeks, months or years lie between two days."""
    if unit in ("day", "week"):
        return (last - first).days // (1 if unit == "day" else 7)
    months = (last.year - first.year) * 12 + last.month - first.month - (last.day < first.day)
    return months if unit == "month" else months // 12


def _before(day: dt.date, count: int, unit: str) -> dt.date:
    """The day ``count`` units before ``day``; where its month has no such day, that month's last."""
    if unit in ("day", "week"):
        return day - dt.timedelta(days=count * (1 if unit == "day" else 7))
    months = day.year * 12 + day.month - 1 - count * (1 if unit == "month" else 12)
    first = dt.date(months // 12, months % 12 + 1, 1)
    following = (first + dt.timedelta(days=31)).replace(day=1)
    return first.replace(day=min(day.day, (following - dt.timedelta(days=1)).day))


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
