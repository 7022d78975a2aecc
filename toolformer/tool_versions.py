"""What version of itself each service names, asked for now and then: a cached result is good for one version only."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from toolformer.tools import Tool

FRESH_S: Final = 10.0
"""Seconds for which a version is believed after the service last named it."""


@dataclass(frozen=True, slots=True)
class _Known:
    version: str | None
    at: float


class ToolVersions:
    """The versions that the services name, by tool.

    Args:
        ask: asks a service for its version, in bounded time; ``None`` where it gives no answer, empty where it gives
            its answers no version.
        clock: seconds on a clock that never goes back.
    """

    def __init__(
        self, ask: Callable[[Tool], Awaitable[str | None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, tool: Tool) -> str | None:
        """The tool's version, asked for if it was last heard long ago; the last one heard where nobody answers."""
        async with self._asking[tool.name]:  # the first one asks for all who wait
            known = self._known.get(tool.name)
            if known is None or self._clock() - known.at >= FRESH_S:
                answer = await self._ask(tool)
                version = known.version if answer is None and known is not None else answer
                self._known[tool.name] = known = _Known(version, self._clock())
            return known.version

    def heard(self, tool: Tool, version: str) -> None:
        """The service named this version, in an answer."""
        self._known[tool.name] = _Known(version, self._clock())
