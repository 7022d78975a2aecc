"""The day in a URL, which the calendar's data take for the day of writing (appendix A of the paper)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

FIRST_DAY: Final = datetime.date(1990, 1, 1)
"""No page of the Web is older."""
LAST_DAY: Final = datetime.date(2049, 12, 31)

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_NAME: Final = "|".join([*_LONG, "sept", *_MONTHS])
_YEAR: Final = r"(?P<y>(?:19|20)\d\d)"
_MONTH: Final = r"(?P<m>1[0-2]|0?[1-9])"
_DAY: Final = r"(?P<d>3[01]|[12]\d|0?[1-9])"
# The time of day may follow, as in 2016-11-28t10:00.
_START, _END = r"(?<![0-9a-z])", r"(?:(?![0-9a-z])|(?=t\d\d))"
_GAP: Final = r"(?P<gap>[-/_.])"
_SHAPES: Final = tuple(
    re.compile(f"{_START}{shape}{_END}")
    for shape in (
        rf"{_YEAR}{_GAP}{_MONTH}(?P=gap){_DAY}",
        # Run together, on its own or with the time of day behind it.
        rf"{_YEAR}(?P<m>1[0-2]|0[1-9])(?P<d>3[01]|[12]\d|0[1-9])(?:t?(?:[01]\d|2[0-3])[0-5]\d[0-5]\d\d*)?",
        rf"{_YEAR}[-/_.]?(?P<name>{_NAME})[-/_.]?{_DAY}(?:st|nd|rd|th)?",
        rf"{_DAY}(?:st|nd|rd|th)?[-/_.]?(?P<name>{_NAME})[-/_.]?{_YEAR}",
        rf"(?P<name>{_NAME})[-/_.]?{_DAY}(?:st|nd|rd|th)?[-/_.,]{{1,2}}{_YEAR}",
        rf"(?P<a>\d\d?){_GAP}(?P<b>\d\d?)(?P=gap){_YEAR}",
    )
)
_YM: Final = r"(?:19|20)\d\d"
_MONTH_ONLY: Final = re.compile(rf"{_START}(?:{_YM}[-/_.]?(?:1[0-2]|0?[1-9]|{_NAME})|(?:{_NAME})[-/_.]?{_YM}){_END}")


@dataclass(frozen=True, slots=True)
class UrlDate:
    """The day that a URL names, or the ``reason`` why it names none; exactly one of them is set."""

    day: datetime.date | None = None
    reason: str | None = None


NO_URL: Final = UrlDate(reason="no URL")
NO_DATE: Final = UrlDate(reason="no date in the URL")
NO_DAY: Final = UrlDate(reason="a month without its day in the URL")
IMPOSSIBLE: Final = UrlDate(reason="a date in the URL that is not the day of writing")
AMBIGUOUS: Final = UrlDate(reason="day and month cannot be told apart in the URL")


def date_in_url(url: str | None, *, latest: datetime.date | None = None) -> UrlDate:
    """The first whole date in the URL's path, else in its query; a host's digits are none.

    ``/2016/11/28/``, ``2016-11-28``, ``20161128``, ``2016/nov/28``, ``28-november-2016``, ``november-28-2016``,
    ``28-11-2016`` and ``?day=28&month=11&year=2016`` are read. Where day and month come before the year as numbers and
    could be either way round, the date is ambiguous. Dates before the Web, or after ``latest`` (when the page was
    downloaded), are none.
    """
    if not url:
        return NO_URL
    try:
        split = urlsplit(url)
    except ValueError:
        return NO_DATE
    last = min(latest or LAST_DAY, LAST_DAY)
    path, query = unquote(split.path).lower(), unquote(split.query).lower()
    whole: UrlDate | None = None
    for text in (path, query):
        for found in _in_order(text):
            if found.day is not None and FIRST_DAY <= found.day <= last:
                return found
            whole = whole or (AMBIGUOUS if found is AMBIGUOUS else IMPOSSIBLE)
        if text is query and (day := _fields(query)) is not None and FIRST_DAY <= day <= last:
            return UrlDate(day)
    return whole or (NO_DAY if _MONTH_ONLY.search(path) else NO_DATE)


def _in_order(text: str) -> Iterator[UrlDate]:
    found = [match for shape in _SHAPES for match in shape.finditer(text)]
    for match in sorted(found, key=lambda match: match.start()):
        if (date := _read(match.groupdict())) is not None:
            yield date


def _read(groups: dict[str, str | None]) -> UrlDate | None:
    year = int(groups["y"] or 0)
    if (first := groups.get("a")) is not None:
        one, two = int(first), int(groups["b"] or 0)
        if one <= 12 and two <= 12 and one != two:
            return AMBIGUOUS
        day, month = (two, one) if two > 12 else (one, two)
    else:
        name = groups.get("name")
        month = _MONTHS.index(name[:3]) + 1 if name else int(groups["m"] or 0)
        day = int(groups["d"] or 0)
    return _valid(year, month, day)


def _valid(year: int, month: int, day: int) -> UrlDate | None:
    try:
        return UrlDate(datetime.date(year, month, day))
    except ValueError:
        return None


def _fields(query: str) -> datetime.date | None:
    """A date given in three fields of the query."""
    try:
        given = parse_qs(query, max_num_fields=200)
        year, month, day = (int(given[name][0]) for name in ("year", "month", "day"))
    except (KeyError, ValueError):
        return None
    found = _valid(year, month, day)
    return found.day if found else None
