"""A day of the calendar as a request may carry it."""

from __future__ import annotations

import datetime
import re
from typing import Annotated, Any

from pydantic import BeforeValidator


def _parse(value: Any) -> datetime.date:
    # pydantic alone would take numbers and times of day for days as well.
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError("must be a day of the calendar as YYYY-MM-DD, such as 2026-11-20")


Day = Annotated[datetime.date, BeforeValidator(_parse)]
"""A day of the calendar, ``YYYY-MM-DD`` and nothing else."""
