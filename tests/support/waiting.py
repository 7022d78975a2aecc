"""Waiting for what nobody announces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(holds: Callable[[], bool]) -> None:
    """Return as soon as ``holds`` says yes, asked again and again; fails if that takes a minute."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def wait_for(holds: Callable[[], bool]) -> None:
    """The same where no event loop is; fails after four minutes."""
    ends = time.monotonic() + 250
    while not holds():
        assert time.monotonic() < ends, "it does not come to hold"
        time.sleep(0.005)
