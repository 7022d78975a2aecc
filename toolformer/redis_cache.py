"""Results kept in Redis, for several gateways and jobs together.

An entry is one string, named by the digest of its `CallKey`, with a time to live; a sorted set of their names by age
bounds their number. Redis is never waited for longer than `DEADLINE_S`: after a few failures in a row it is left alone
for a while. One that refuses is not: a full or read-only Redis takes no writes and still serves reads. What comes out
of it is data that anybody may have written: it is read up to a limit, must have an entry's form and must say that it
answers the very call it was looked up for, or it counts as absent.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, ValidationError
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from toolformer.circuit_breaker import CircuitBreaker
from toolformer.result_cache import MAX_CHARS, CacheConfigError, CacheUnavailable, CallKey

DEADLINE_S: Final = 0.1
"""Seconds that a look-up or a store may take, connecting included."""

_PREFIX: Final = "toolformer:result:"
_NAMES: Final = "toolformer:results"
"""The sorted set of the entries' names, by the Unix time at which each was written."""
_MAX_BYTES: Final = 12 * MAX_CHARS + 4_096
"""No entry is longer: JSON writes a character in at most 12 bytes, and the names around the texts are short."""
_CONNECTIONS: Final = 16
_SCHEMES: Final = ("redis", "rediss", "unix")

logger = logging.getLogger(__name__)

T = TypeVar("T")

Work = Literal["connecting", "reading", "writing"]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    call: tuple[str, str, str, str, str | None]
    output: str


class RedisCache:
    """A `ResultCache` in the Redis at ``url``, for one event loop.

    Args:
        url: ``redis://``, ``rediss://`` (TLS) or ``unix://``, with user and password where Redis asks for them.
        size: entries kept in that database by all who share it; beyond it the oldest go.
        age_s: seconds that an entry lives.
        password_file: a file with the password, in place of one in ``url``; read whenever a connection is opened, so
            that a new password needs no restart.
        deadline_s: seconds for one look-up or store.
        cool_down_s: seconds that a Redis which failed three times in a row is left alone.

    Raises:
        CacheConfigError: if ``url`` cannot hold, or has a password beside ``password_file``.
    """

    def __init__(
        self,
        url: str,
        *,
        size: int,
        age_s: float,
        password_file: Path | None = None,
        deadline_s: float = DEADLINE_S,
        cool_down_s: float = 5.0,
    ) -> None:
        self._redis = _client(url, password_file, deadline_s)
        self.address = _without_secrets(url)
        """The URL without user, password and options."""
        self._size = size
        self._age_s = age_s
        self._deadline_s = deadline_s
        self._circuit = CircuitBreaker(failure_threshold=3, cool_down_s=cool_down_s)
        self._failing: set[Work] = set()

    async def get(self, keys: Sequence[CallKey]) -> list[str | None]:
        """See `ResultCache`."""

        async def read() -> list[Any]:
            pipe = self._redis.pipeline(transaction=False)
            for key in keys:
                pipe.getrange(_name(key), 0, _MAX_BYTES)  # a foreign value may be of any size
            found = await pipe.execute(raise_on_error=False)
            for one in found:
                if isinstance(one, Exception) and not _is_of_another_kind(one):
                    raise one
            return found

        found = await self._within_deadline("reading", read)
        return [_output(key, one) for key, one in zip(keys, found, strict=True)]

    async def put(self, outputs: Mapping[CallKey, str]) -> None:
        """See `ResultCache`."""
        entries = {_name(key): json.dumps({"call": key, "output": output}) for key, output in outputs.items()}
        now = time.time()

        async def write() -> None:
            pipe = self._redis.pipeline(transaction=True)
            for name, entry in entries.items():
                pipe.set(name, entry, px=round(self._age_s * 1000))
            pipe.zadd(_NAMES, dict.fromkeys(entries, now))
            pipe.pexpire(_NAMES, round(self._age_s * 1000))
            pipe.zremrangebyscore(_NAMES, "-inf", now - self._age_s)
            pipe.zrange(_NAMES, 0, -self._size - 1)
            done = await pipe.execute(raise_on_error=False)
            for one in done:
                if isinstance(one, Exception):
                    if _is_of_another_kind(one):  # without the set of names nothing bounds the entries
                        await self._redis.delete(_NAMES)
                    raise one
            if oldest := done[-1]:
                pipe = self._redis.pipeline(transaction=True)
                pipe.delete(*oldest)
                pipe.zrem(_NAMES, *oldest)
                await pipe.execute()

        await self._within_deadline("writing", write)

    async def ping(self) -> None:
        """Ask for a sign of life.

        Raises:
            CacheUnavailable: there is none; the message says why.
        """
        await self._within_deadline("reading", self._redis.ping)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._redis.aclose()

    async def _within_deadline(self, kind: Work, work: Callable[[], Awaitable[T]]) -> T:
        attempt = self._circuit.admit()
        if attempt is None:
            raise CacheUnavailable(f"{self.address} did not answer lately; it is asked again shortly")
        try:
            async with asyncio.timeout(self._deadline_s):
                done = await work()
            attempt.succeeded()
            self._works("connecting", kind)
            return done
        except ResponseError as error:
            attempt.succeeded()
            self._works("connecting")
            raise self._fails(kind, str(error)) from error
        except (RedisError, OSError) as error:  # a TimeoutError is an OSError
            attempt.failed()
            raise self._fails("connecting", str(error) or f"no answer within {self._deadline_s:g} s") from error
        finally:
            attempt.abandoned()  # counts only where nothing else was said: the caller gave up

    def _fails(self, kind: Work, reason: str) -> CacheUnavailable:
        if kind not in self._failing:  # the next ones would say the same, call after call
            self._failing.add(kind)
            logger.warning("%s fails at the result cache %s (%s); calls go on without it", kind, self.address, reason)
        return CacheUnavailable(f"{self.address}: {reason}")

    def _works(self, *kinds: Work) -> None:
        for kind in self._failing.intersection(kinds):
            self._failing.remove(kind)
            logger.info("%s works again at the result cache %s", kind, self.address)


class _PasswordFile(CredentialProvider):
    """The password in a file, as it is now."""

    def __init__(self, path: Path, user: str | None) -> None:
        self._path, self._user = path, user

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        try:
            password = (await asyncio.to_thread(self._path.read_text, encoding="utf-8")).rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise AuthenticationError(
                f"TOOLFORMER_CACHE_PASSWORD_FILE: {self._path} cannot be read: {error}"
            ) from error
        if not password:
            raise AuthenticationError(f"TOOLFORMER_CACHE_PASSWORD_FILE: {self._path} is empty")
        return (self._user, password) if self._user else (password,)


def _client(url: str, password_file: Path | None, deadline_s: float) -> Redis:
    remedy = "write redis://HOST:PORT/DATABASE, with USER:PASSWORD@ before HOST where Redis asks for them"
    try:
        if urlsplit(url).scheme not in _SCHEMES:
            raise ValueError(f"the scheme is none of {', '.join(_SCHEMES)}")
        given = {}
        if password_file is not None:
            parts = urlsplit(url)
            if parts.password:
                raise ValueError("a password here and in TOOLFORMER_CACHE_PASSWORD_FILE: leave one out")
            given["credential_provider"] = _PasswordFile(password_file, parts.username)
            url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=deadline_s,
            socket_timeout=deadline_s,
            socket_connect_timeout=deadline_s,
            retry=Retry(NoBackoff(), 0),
            **given,
        )
        pool.connection_class(**pool.connection_kwargs)  # an option that does not exist shows only here
    except (ValueError, TypeError, RedisError) as error:
        # What may hold a password is not repeated.
        reason = str(error) if "@" not in str(error) else "it cannot be read"
        raise CacheConfigError(f"TOOLFORMER_CACHE_URL: {reason}; {remedy}") from None
    return Redis.from_pool(pool)


def _without_secrets(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _name(key: CallKey) -> str:
    return _PREFIX + hashlib.sha256(json.dumps(key).encode()).hexdigest()


def _is_of_another_kind(error: Exception) -> bool:
    """Whether somebody keeps a list or the like under an entry's name: that is no fault of Redis."""
    return isinstance(error, ResponseError) and str(error).startswith("WRONGTYPE")


def _output(key: CallKey, found: Any) -> str | None:
    if not isinstance(found, bytes) or not 0 < len(found) <= _MAX_BYTES:
        return None
    try:
        entry = _Entry.model_validate_json(found)
    except ValidationError:
        return None
    return entry.output if entry.call == key and key.fits(entry.output) else None
