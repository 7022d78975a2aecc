"""The state of the engine as metrics, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from inference_gateway.backends.base import Backend
from inference_gateway.engine.stats import EngineStats

NAMESPACE: Final = "toolformer"


class EngineCollector(Collector):
    """One snapshot a scrape, so that its numbers belong together."""

    def __init__(self, backend: Callable[[], Backend | None]) -> None:
        self._backend = backend

    def collect(self) -> Iterator[Metric]:
        """The metrics of a fresh snapshot."""
        backend = self._backend()
        stats = EngineStats() if backend is None else backend.stats()
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
