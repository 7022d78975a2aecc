"""How much of the gateway one client, and all of them together, may use at a time."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class OverQuota(Exception):  # noqa: N818 - a state, not a fault
    """No more now. ``everybody`` says whether the gateway as a whole is full, or only this client's share is used up;
    after ``retry_after`` seconds another try makes sense."""

    def __init__(self, message: str, retry_after: float, *, everybody: bool) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.everybody = everybody


@dataclass(slots=True)
class _Bucket:
    """Choices that a client may still begin at once; it fills up evenly."""

    left: float
    at: float


class Quotas:
    """Admits requests. In a client's share a request counts as often as it has choices.

    Args:
        concurrent: requests in progress at once, of all clients.
        concurrent_each: choices of one client's requests in progress at once; ``None`` for no limit.
        per_minute_each: choices that one client may begin in a minute, all at once or spread; ``None`` for no limit.
        clock: seconds on a clock that never goes back.
    """

    def __init__(
        self,
        concurrent: int,
        *,
        concurrent_each: int | None = None,
        per_minute_each: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._concurrent = concurrent
        self._concurrent_each = concurrent_each
        self._per_minute = per_minute_each
        self._clock = clock
        self._in_progress: Counter[str] = Counter()
        self._further: Counter[str] = Counter()
        """Choices in progress of each client beside the first of each request."""
        self._buckets: dict[str, _Bucket] = {}

    @contextlib.contextmanager
    def admitted(self, client: str | None) -> Iterator[None]:
        """Hold room for a request of ``client``, the name of its key; only the common limit holds for ``None``.

        Raises:
            OverQuota: if there is none.
        """
        if self._in_progress.total() >= self._concurrent:
            message = f"{self._concurrent} completion requests are in progress already"
            raise OverQuota(message, 1.0, everybody=True)
        if client is not None:
            self._check(client)
        name = client or ""
        self._in_progress[name] += 1
        try:
            yield
        finally:
            self._in_progress[name] -= 1
            if not self._in_progress[name]:
                del self._in_progress[name]

    @contextlib.contextmanager
    def widened(self, client: str | None, choices: int) -> Iterator[None]:
        """Hold room for all ``choices`` of a request that was admitted, when it was not known how many there are.

        Raises:
            OverQuota: if there is none.
        """
        further = choices - 1
        if client is None or not further:
            yield
            return
        self._check(client, further)
        self._further[client] += further
        try:
            yield
        finally:
            self._further[client] -= further
            if not self._further[client]:
                del self._further[client]

    def _check(self, client: str, wanted: int = 1) -> None:
        there = self._in_progress[client] + self._further[client]
        if self._concurrent_each is not None and there + wanted > self._concurrent_each:
            message = f"this API key's share is {self._concurrent_each} choices in progress, and {there} are"
            raise OverQuota(message, 1.0, everybody=False)
        if self._per_minute is None:
            return
        now = self._clock()
        bucket = self._buckets.setdefault(client, _Bucket(float(self._per_minute), now))
        rate = self._per_minute / 60
        bucket.left = min(float(self._per_minute), bucket.left + rate * (now - bucket.at))
        bucket.at = now
        if bucket.left < min(wanted, self._per_minute):
            message = f"this API key has begun {self._per_minute} choices within a minute, its share"
            raise OverQuota(message, math.ceil((wanted - bucket.left) / rate), everybody=False)
        bucket.left -= wanted
