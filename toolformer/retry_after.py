"""How long a server that is busy asks to be left alone."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds that ``Retry-After`` asks for, a number of them or a date; 0 for anything else, or where it is absent."""
    value = headers.get("Retry-After", "")
    if re.fullmatch(r"[0-9]{1,9}", value.strip()):
        return float(value)
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return 0.0
    if at.tzinfo is None:
        return 0.0
    return max(0.0, (at - dt.datetime.now(dt.UTC)).total_seconds())
