"""Results of earlier calls, kept for a while: in this process, or in Redis for several (`redis_cache`).

Kept are outputs alone, never errors, and only of calls whose answer holds (`Tool.cacheable`): not of a tool that is not
pure, nor of a calendar that was given no date. `cache_settings` says how much is kept, how long and where.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, Self

from toolformer.tool_wire import Request
from toolformer.tools import Tool

MAX_CHARS: Final = 16_384
"""Characters of a call's input and output together; a longer call is not kept."""

DEFAULT_SIZE: Final = 4_096
DEFAULT_AGE_S: Final = 3_600.0

Lookup = Literal["hit", "miss", "shared", "unavailable"]
"""What came of looking for a call: it was kept; it was not; an identical call under way answered it too; the cache
could not be asked."""


class CacheConfigError(ValueError):
    """A setting of the cache cannot hold; the message names the environment variable and the remedy."""


class CacheUnavailable(Exception):  # noqa: N818 - a state, which no caller of a tool ever sees
    """The cache cannot be asked now; the message says why."""


class CallKey(NamedTuple):
    """What an output depends on: the tool, its versions by the registry and by its service, input and context."""

    tool: str
    version: str
    service_version: str
    input: str
    date: str | None

    @classmethod
    def of(cls, tool: Tool, service_version: str, request: Request) -> Self:
        """The key of a call that `Tool.cacheable` holds for."""
        # A datetime is a date too, but its own isoformat has a time.
        date = dt.date.isoformat(request.date) if request.date is not None and tool.takes_date else None
        return cls(tool.name, tool.version, service_version, request.input, date)

    def fits(self, output: str = "") -> bool:
        """Whether the call is short enough to be kept."""
        return len(self.input) + len(output) <= MAX_CHARS


class ResultCache(Protocol):
    """Outputs by key, bounded in number and age. Neither method takes longer than a small fixed time."""

    async def get(self, keys: Sequence[CallKey]) -> Sequence[str | None]:
        """The output kept for each key, or ``None``.

        Raises:
            CacheUnavailable: if it cannot be asked.
        """
        ...

    async def put(self, outputs: Mapping[CallKey, str]) -> None:
        """Keep these outputs.

        Raises:
            CacheUnavailable: if it cannot be written.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what the cache holds open."""


class MemoryCache:
    """Outputs in this process; the one used longest ago goes first.

    Args:
        size: outputs kept, at least 1.
        age_s: seconds that an output is believed.
        clock: seconds on a clock that never goes back.
    """

    def __init__(
        self, size: int = DEFAULT_SIZE, age_s: float = DEFAULT_AGE_S, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._size = size
        self._age_s = age_s
        self._clock = clock
        self._kept: OrderedDict[CallKey, tuple[str, float]] = OrderedDict()

    async def get(self, keys: Sequence[CallKey]) -> list[str | None]:
        """See `ResultCache`."""
        return [self._get(key) for key in keys]

    async def put(self, outputs: Mapping[CallKey, str]) -> None:
        """See `ResultCache`."""
        for key, output in outputs.items():
            self._kept[key] = output, self._clock() + self._age_s
            self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)

    async def aclose(self) -> None:
        """Forgets everything."""
        self._kept.clear()

    def _get(self, key: CallKey) -> str | None:
        output, ends = self._kept.get(key, (None, math.inf))
        if output is None:
            return None
        if self._clock() >= ends:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return output
