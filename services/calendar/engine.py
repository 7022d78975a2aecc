"""What day it is, in the paper's words: ``Today is Friday, November 20, 2026.``

While data is made, the day is the document's own (the call's context); at inference it is today in a configured zone.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final
from zoneinfo import ZoneInfo

# Written out because strftime's names follow the process's locale.
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def weekday(day: datetime.date) -> str:
    """The day of the week in English."""
    return WEEKDAYS[day.weekday()]


def sentence(day: datetime.date) -> str:
    """``Today is Friday, November 20, 2026.``"""
    return f"Today is {weekday(day)}, {MONTHS[day.month - 1]} {day.day}, {day.year}."


class Clock:
    """The current day in one time zone.

    Args:
        zone: where it is today.
        now: the time in a zone; replaced by tests only.
    """

    def __init__(self, zone: ZoneInfo, now: Callable[[ZoneInfo], datetime.datetime] = datetime.datetime.now) -> None:
        self.zone = zone
        self._now = now

    def today(self) -> datetime.date:
        """The day it is in the zone."""
        return self._now(self.zone).date()
