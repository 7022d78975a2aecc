"""How far a long step has come, in lines of the log: they read as well in a terminal as in a container's log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

EVERY_SECONDS: Final = 10.0

logger = logging.getLogger(__name__)


class Progress:
    """Says every few seconds how much of a step is done, how fast it goes and how long it will still take.

    Args:
        step: what is being done, such as ``cutting``.
        unit: what is counted, such as ``pages``.
        clock: seconds, for tests.
    """

    def __init__(self, step: str, unit: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._step = step
        self._unit = unit
        self._clock = clock
        self._began = self._logged = clock()

    def report(self, share: float, count: int) -> None:
        """Note that ``share`` (0 to 1) is done and ``count`` units with it; logs a line if it is time for one."""
        now = self._clock()
        if now - self._logged < EVERY_SECONDS:
            return
        self._logged = now
        seconds = now - self._began
        line = f"{self._step}: {100 * share:.0f} %, {count:,} {self._unit}, {count / seconds:,.0f} a second"
        if share > 0:
            line += f", {_duration(seconds * (1 - share) / share)} left"
        logger.info(line)


def _duration(seconds: float) -> str:
    """`seconds` in the unit a person would say it in."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
