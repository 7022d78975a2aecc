"""What the gateway counts, beside the requests that ``toolformer.http_api.metrics`` counts for every server.

Names end as operators of inference servers know them (vLLM's suffixes) and begin with ``toolformer_``.
"""

from __future__ import annotations

import itertools
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from inference_gateway.backends.base import Backend
from inference_gateway.core import CallFinished, Event, Finished
from inference_gateway.engine.stats import EngineStats, StepTimes
from toolformer.http_api.metrics import SECONDS
from toolformer.result_cache import Lookup


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

    def observe_all(self, values: Iterable[float]) -> None:
        """Count each of ``values``."""
        for value in values:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._sum += value

    def describe(self) -> Iterator[HistogramMetricFamily]:
        """The metric without its values."""
        yield HistogramMetricFamily(self._name, self._help)

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The metric as it is."""
        ends = [*map(floatToGoString, self._bounds), "+Inf"]
        buckets = list(zip(ends, itertools.accumulate(self._counts), strict=True))
        yield HistogramMetricFamily(self._name, self._help, buckets=buckets, sum_value=self._sum)


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
            ("dropped_pauses", "Sequences in a tool call whose cache was dropped.", stats.dropped_pauses),
        ]
        for name, help, value in gauges:
            yield GaugeMetricFamily(f"{NAMESPACE}_{name}", help, value=value)
        for name, help, value in counters:
            yield CounterMetricFamily(f"{NAMESPACE}_{name}", help, value=value)


_STEP_SECONDS: Final = (0.0001, 0.00025, *SECONDS)
"""Bounds for what happens at every token: a tenth of a millisecond and up."""


_CODES_EACH: Final = 32
"""Error codes of one tool that become labels, far more than any tool of the project has."""


class GatewayMetrics:
    """Counters of completions, tokens and tool calls, times of what clients wait for, and the state of the engine. The
    backend reports the times of tokens."""

    def __init__(self, registry: CollectorRegistry, backend: Callable[[], Backend | None]) -> None:
        """Register with ``registry``; ``backend`` gives the backend, or ``None`` while there is none."""

        def counter(name: str, help: str, *labels: str) -> Counter:
            return Counter(name, help, labels, namespace=NAMESPACE, registry=registry)

        def seconds(name: str, help: str, *labels: str) -> Histogram:
            return Histogram(name, help, labels, namespace=NAMESPACE, buckets=SECONDS, registry=registry)

        def token_times(name: str, help: str, bounds: tuple[float, ...]) -> TokenTimes:
            return TokenTimes(f"{NAMESPACE}_{name}", help, bounds, registry)

        self.completions = counter(
            "completions",
            "Completions ended: stop, length, timeout, error, refused, or cancelled by a client that left.",
            "finish_reason",
        )
        self.prompt_tokens = counter("prompt_tokens", "Tokens of prompts.")
        self.generation_tokens = counter("generation_tokens", "Tokens made by the model.")
        self.tool_tokens = counter("tool_tokens", "Tokens put in from tools' results.")
        self.rolled_back_tokens = counter(
            "rolled_back_tokens", "Tokens of calls that were taken back, made besides generation_tokens."
        )
        self.tool_calls = counter("tool_calls", "Tool calls by outcome: ok, or the error's code.", "tool", "outcome")
        self.tool_seconds = seconds(
            "tool_call_duration_seconds", "Seconds a sequence waited for a tool.", "tool", "outcome"
        )
        self.tool_lookups = counter(
            "tool_cache_lookups",
            "Calls looked for among kept results: hit, miss, unavailable (no answer from the cache); and those shared "
            "with an identical call under way.",
            "tool",
            "outcome",
        )
        self.early_calls = counter(
            "early_dispatches",
            "Calls begun before the arrow: used, or wasted where it did not come.",
            "tool",
            "outcome",
        )
        self.first_token_seconds = token_times(
            "time_to_first_token_seconds", "Seconds from a completion's arrival to its first token.", SECONDS
        )
        self.inter_token_seconds = token_times(
            "inter_token_latency_seconds", "Seconds between two tokens of a sequence.", _STEP_SECONDS
        )
        self.resume_seconds = token_times(
            "resume_latency_seconds", "Seconds from a tool's answer to the next token.", _STEP_SECONDS
        )
        self.request_seconds = seconds(
            "e2e_request_latency_seconds", "Seconds from a completion's arrival to its end, tool calls included."
        )
        self._codes: dict[str, set[str]] = {}
        registry.register(EngineCollector(backend))

    def code(self, tool: str, code: str) -> str:
        """``code`` as a label: a service makes up its codes, so that of each tool only the first `_CODES_EACH` have a
        name of their own."""
        known = self._codes.setdefault(tool, set())
        if code in known or len(known) < _CODES_EACH:
            known.add(code)
            return code
        return "other"

    def saw_call(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a call that ended as ``ok`` or with an error's code, and for which ``seconds`` were waited."""
        label = outcome if outcome == "ok" else self.code(tool, outcome)
        self.tool_calls.labels(tool, label).inc()
        if seconds > 0:
            self.tool_seconds.labels(tool, label).observe(seconds)

    def saw_lookup(self, tool: str, lookup: Lookup) -> None:
        """Count a call that was looked for among kept results."""
        self.tool_lookups.labels(tool, lookup).inc()

    def saw_early(self, tool: str, outcome: str) -> None:
        """Count a call that began early."""
        self.early_calls.labels(tool, outcome).inc()

    def saw_step(self, times: StepTimes) -> None:
        """Count the times of a step of the engine."""
        self.first_token_seconds.observe_all(times.first)
        self.inter_token_seconds.observe_all(times.between)
        self.resume_seconds.observe_all(times.resumed)

    def completion(self) -> CompletionObserver:
        """Count one completion, which starts now."""
        return CompletionObserver(self)


class CompletionObserver:
    """Sees one completion's events; `end` must be called whatever happens."""

    def __init__(self, metrics: GatewayMetrics) -> None:
        self._metrics = metrics
        self._began = time.perf_counter()
        self.outcome = "cancelled"
        """How the completion ended; as long as nothing else is known, its client left."""

    def saw(self, event: Event) -> None:
        """Count ``event``."""
        metrics = self._metrics
        match event:
            case CallFinished(record):
                outcome = "ok" if record.error is None else record.error.partition(":")[0]
                metrics.saw_call(record.tool, outcome, record.duration_ms / 1000)
            case Finished(reason, usage):
                self.outcome = reason
                metrics.prompt_tokens.inc(usage.prompt_tokens)
                metrics.generation_tokens.inc(usage.completion_tokens)
                metrics.tool_tokens.inc(usage.spliced_tokens)
                metrics.rolled_back_tokens.inc(usage.rolled_back_tokens)
            case _:
                pass

    def end(self) -> None:
        """Count how it ended."""
        self._metrics.completions.labels(self.outcome).inc()
        if self.outcome != "refused":
            self._metrics.request_seconds.observe(time.perf_counter() - self._began)
