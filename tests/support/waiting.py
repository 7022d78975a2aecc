"""Waiting for what nobody announces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], bool]) -> None:
    """Return as soon as ``holds`` says yes, asked again and again; fails if that takes a minute."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
