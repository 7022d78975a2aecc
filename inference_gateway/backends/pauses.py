"""Waiting before a request is sent again."""

from __future__ import annotations

import asyncio
import random
from typing import Final

_ATTEMPTS: Final = 3
_FIRST: Final = 0.2
_LONGEST: Final = 5.0


class Pauses:
    """The pauses between the attempts of one request: each twice the one before, in seconds, and not too many."""

    def __init__(self) -> None:
        self._left = _ATTEMPTS - 1
        self._next = _FIRST

    async def wait(self, *, at_least: float = 0.0) -> bool:
        """Wait for the next attempt's time; false, at once, if there shall be none."""
        if self._left == 0:
            return False
        self._left -= 1
        # Many gateways may have been turned away together; they shall not come back together.
        await asyncio.sleep(min(max(self._next * random.uniform(0.5, 1.0), at_least), _LONGEST))
        self._next *= 2
        return True
