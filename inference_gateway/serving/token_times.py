"""A histogram for what happens at every token."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class TokenTimes(Collector):
    """Seconds, counted by the event loop's thread alone.

    prometheus_client's own histogram takes a lock for its sum and another for its bucket; at ten thousand tokens a
    second that is work worth leaving out.
    """

    def __init__(self, name: str, help: str, bounds: Sequence[float], registry: CollectorRegistry) -> None:
        """Register with ``registry`` under ``name``; ``bounds`` are the buckets' upper ends, ascending."""
        self._name, self._help = name, help
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, seconds: float, times: int = 1) -> None:
        """Count ``seconds``, so many ``times``."""
        self._counts[bisect_left(self._bounds, seconds)] += times
        self._sum += seconds * times

    def observe_all(self, values: Iterable[float]) -> None:
        """Count each of ``values``."""
        for value in values:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += value

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """The metric without its values."""
        yield HistogramMetricFamily(self._name, self._help)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The metric as it stands."""
        ends = [*map(floatToGoString, self._bounds), "+Inf"]
        buckets = list(zip(ends, itertools.accumulate(self._counts), strict=True))
        yield HistogramMetricFamily(self._name, self._help, buckets=buckets, sum_value=self._sum)
