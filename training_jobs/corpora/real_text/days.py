"""Sentences that say what day it is, and which day another is: ``[days]`` of ``phrases.toml``."""

from __future__ import annotations

import calendar
import datetime as dt
import random
import re
from collections.abc import Mapping
from typing import Any, Final

from training_jobs.corpora.real_text.problems import PHRASES, spelled

_FIRST_DAY: Final = dt.date(1950, 1, 1)
_DAYS: Final = 30_000
_SPELLED_SHARE: Final = 0.5
_MOST_YEARS: Final = (12, 80)
"""One as often as the other: people count few years more often."""
_FROM_CALENDAR: Final = re.compile(r" \{(?!k\}|w\}|born\})")


def any_day(rng: random.Random) -> dt.date:
    """A day from 1950 on."""
    return _FIRST_DAY + dt.timedelta(days=rng.randrange(_DAYS))


def beside(rng: random.Random) -> str:
    """A form that names another day; a kind ``often`` times as often as those that do not say."""
    groups = PHRASES["days"]["beside"]
    group = rng.choices(groups, [one.get("often", 1) for one in groups])[0]
    slot, moment = rng.choice([(slot, one) for slot, moments in group["when"].items() for one in moments])
    form: str = rng.choice(group["forms"])
    return form.replace("{when}", moment).replace("{x", "{" + slot)


def filled(form: str, slots: Mapping[str, Any]) -> tuple[str, str]:
    """The form with its slots filled, and of it what stands before the calendar's part; it may begin with one."""
    text, before = (part.format_map(slots) for part in (form, _FROM_CALENDAR.split(form)[0]))
    return text[:1].upper() + text[1:], before[:1].upper() + before[1:]


def of_day(day: dt.date, rng: random.Random) -> Mapping[str, Any]:
    """What stands for the braces of the forms."""
    k, m = rng.randint(2, 10), rng.randint(2, rng.choice(_MOST_YEARS))
    ago = day.year - m
    kept = {name: _kept(day.year, *rule) for name, rule in PHRASES["days"]["kept"].items()}
    steps = {"n": 1, "p": -1, "t": 2, "q": -2, "l": k, "e": -k, "d7": 7, "d_7": -7, "d14": 14}
    return {slot: day + dt.timedelta(days=step) for slot, step in steps.items()} | kept | {
        "d": day, "y": day.year + 1, "y0": day.year - 1, "k": spelled(rng, str(k), _SPELLED_SHARE),
        "m": m, "w": spelled(rng, str(m), _SPELLED_SHARE), "after": day.year + m, "ago": ago, "born": ago,
    }  # fmt: skip


def _kept(year: int, month: int, number: int | str, which: int | None = None) -> dt.date:
    """A day that is kept each year, as ``days.kept`` says: the ``number`` of its month, or a weekday, the ``which``-th
    there."""
    if isinstance(number, int):
        return dt.date(year, month, number)
    weekday = list(calendar.day_name).index(number)
    days = [week[weekday] for week in calendar.monthcalendar(year, month) if week[weekday]]
    return dt.date(year, month, days[(which or 0) - 1])
