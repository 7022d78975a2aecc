"""The state of the engine as metrics, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference_gateway.engine.stats import EngineStats, Observer

NAMESPACE: Final = "toolformer"


@runtime_checkable
class HasStats(Protocol):
    """A backend that knows its sequences and its cache; a remote one does not."""

    def stats(self) -> EngineStats: ...


@runtime_checkable
class Observable(Protocol):
    """A backend that tells how long its steps took."""

    def observe(self, observer: Observer) -> None: ...


@dataclass(frozen=True, slots=True)
class Reporting:
    """Where to read the state: from ``backend`` if it knows it; else what the gateway itself sees of completions."""

    backend: object | None
    running: int
    in_call: int

    def stats(self) -> EngineStats:
        """The state now."""
        if isinstance(self.backend, HasStats):
            return self.backend.stats()
        return EngineStats(running=self.running, in_call=self.in_call)


class EngineCollector(Collector):
    """One snapshot a scrape, so that its numbers belong together."""

    def __init__(self, reporting: Callable[[], Reporting]) -> None:
        self._reporting = reporting

    def collect(self) -> Iterator[Metric]:
        """The metrics of a fresh snapshot."""
        stats = self._reporting().stats()
        gauges: list[tuple[str, str, float]] = [
            ("num_requests_running", "Sequences whose tokens are computed.", stats.running),
            ("num_requests_waiting", "Sequences that wait for room in the cache.", stats.waiting),
            ("num_requests_in_call", "Sequences that wait for a tool.", stats.in_call),
            ("kv_cache_usage_perc", "Share of the cache that sequences hold, 0 to 1.", stats.cache_usage),
            ("kv_held_bytes", "Bytes of cache that sequences in a tool call hold.", stats.paused_bytes),
        ]
        counters: list[tuple[str, str, float]] = [
            ("prefix_cache_queries", "Tokens of prompts that were looked for in the cache.", stats.prefix_queries),
            ("prefix_cache_hits", "The part of prefix_cache_queries that was there.", stats.prefix_hits),
            ("computed_tokens", "Tokens that went through the model.", stats.computed_tokens),
            (
                "recomputed_tokens",
                "The part of computed_tokens that had been computed before for the same sequence.",
                stats.recomputed_tokens,
            ),
            ("num_preemptions", "Sequences stopped for want of memory; they go on later.", stats.preemptions),
            ("dropped_pauses", "Sequences in a tool call whose cache was given up.", stats.dropped_pauses),
        ]
        for name, help, value in gauges:
            yield GaugeMetricFamily(f"{NAMESPACE}_{name}", help, value=value)
        for name, help, value in counters:
            yield CounterMetricFamily(f"{NAMESPACE}_{name}", help, value=value)
