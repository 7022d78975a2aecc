"""Where, how many and how long results are cached, as the environment says; and the cache that this means.

``TOOLFORMER_CACHE_SIZE`` (0 caches nothing), ``TOOLFORMER_CACHE_AGE`` in seconds, ``TOOLFORMER_CACHE_URL``
(``redis://...``; without it memory); ``TOOLFORMER_CACHE_PASSWORD_FILE`` names a file with Redis' password, which may
change while this runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from toolformer.result_cache import DEFAULT_AGE_S, DEFAULT_SIZE, CacheConfigError, MemoryCache, ResultCache


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
