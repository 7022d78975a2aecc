"""Results of earlier calls, kept for a while: in this process, or in Redis for several (`redis_cache`).

Kept are outputs alone, never errors, and only of calls whose answer holds (`Tool.cacheable`): not of a tool that is not
pure, nor of a calendar that was given no date. ``TOOLFORMER_CACHE_SIZE`` (0 keeps nothing), ``TOOLFORMER_CACHE_AGE`` in
seconds and ``TOOLFORMER_CACHE_URL`` (``redis://...``; without it memory) say how much is kept, how long and where;
``TOOLFORMER_CACHE_PASSWORD_FILE`` names a file with Redis' password, which may change while this runs.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
            CacheUnavailable: if it cannot be told.
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


@dataclass(frozen=True, slots=True)
class CacheSettings:
    """Where results are kept (``url`` empty: in memory), how many at most and for how many seconds."""

    url: str = field(default="", repr=False)  # it may hold a password
    size: int = DEFAULT_SIZE
    age_s: float = DEFAULT_AGE_S
    password_file: Path | None = None

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """The settings that ``TOOLFORMER_CACHE_URL``, ``_SIZE``, ``_AGE`` and ``_PASSWORD_FILE`` give; an empty
        variable counts as unset.

        Raises:
            CacheConfigError: if a value cannot hold.
        """
        size = environ.get("TOOLFORMER_CACHE_SIZE") or str(DEFAULT_SIZE)
        if not (size.isascii() and size.isdigit() and int(size) <= 10_000_000):
            remedy = "give the number of results to keep, 0 to 10,000,000"
            raise CacheConfigError(f"TOOLFORMER_CACHE_SIZE: {size!r} is no such number; {remedy}")
        age = environ.get("TOOLFORMER_CACHE_AGE") or str(DEFAULT_AGE_S)
        try:
            age_s = float(age)
        except ValueError:
            age_s = math.nan
        if not 1 <= age_s <= 31_536_000:
            remedy = "give the seconds that a result is believed, 1 to 31,536,000 (a year)"
            raise CacheConfigError(f"TOOLFORMER_CACHE_AGE: {age!r} is no such number; {remedy}")
        password_file = environ.get("TOOLFORMER_CACHE_PASSWORD_FILE")
        return cls(
            environ.get("TOOLFORMER_CACHE_URL", ""), int(size), age_s, Path(password_file) if password_file else None
        )

    def open(self) -> ResultCache | None:
        """The cache, or ``None`` where nothing is to be kept. Nothing is connected to before the first call.

        Raises:
            CacheConfigError: if the URL cannot hold, or asks for Redis where its package is not installed.
        """
        if not self.size:
            return None
        if not self.url:
            return MemoryCache(self.size, self.age_s)
        try:
            from toolformer.redis_cache import RedisCache  # only here: those who keep results in memory need no Redis
        except ModuleNotFoundError as error:
            missing = str(error.name).partition(".")[0]
            remedy = f"install it (pip install {missing}), or unset the variable to keep results in memory"
            raise CacheConfigError(
                f"TOOLFORMER_CACHE_URL asks for Redis, but the package {missing!r} is not installed; {remedy}"
            ) from error
        return RedisCache(self.url, size=self.size, age_s=self.age_s, password_file=self.password_file)
