"""What the gateway counts, beside the requests that ``http_api.metrics`` counts for every server."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from http_api.metrics import SECONDS
from inference_gateway.core import CallFinished, Event, Finished, TextDelta
from toolformer.result_cache import Lookup


class Stats(Protocol):
    """Sequences by state, at this moment."""

    @property
    def waiting(self) -> int: ...

    @property
    def running(self) -> int: ...

    @property
    def in_call(self) -> int: ...


@runtime_checkable
class HasStats(Protocol):
    """A backend that knows its sequences; a remote one may not."""

    def stats(self) -> Stats: ...


class GatewayMetrics:
    """Counters of completions, tokens and tool calls, and gauges of what runs now."""

    def __init__(self, registry: CollectorRegistry, backend: Callable[[], object | None]) -> None:
        """Register with ``registry``; ``backend`` gives the backend, or ``None`` while there is none."""
        self.completions = Counter(
            "completions",
            "Completions ended: stop, length, timeout, error, refused, or cancelled by a client that left.",
            ["finish_reason"],
            registry=registry,
        )
        self.prompt_tokens = Counter("prompt_tokens", "Tokens of prompts.", registry=registry)
        self.generation_tokens = Counter("generation_tokens", "Tokens made by the model.", registry=registry)
        self.tool_tokens = Counter("tool_tokens", "Tokens put in from tools' results.", registry=registry)
        self.rolled_back_tokens = Counter(
            "rolled_back_tokens", "Tokens of calls that were taken back, part of generation_tokens.", registry=registry
        )
        self.tool_calls = Counter(
            "tool_calls", "Tool calls by outcome: ok, or the error's code.", ["tool", "outcome"], registry=registry
        )
        self.tool_seconds = Histogram(
            "tool_call_duration_seconds",
            "Seconds a sequence waited for a tool.",
            ["tool"],
            buckets=SECONDS,
            registry=registry,
        )
        self.tool_lookups = Counter(
            "tool_cache_lookups",
            "Calls looked for among kept results: hit, miss, unavailable (no answer from the cache); and those shared "
            "with an identical call under way.",
            ["tool", "outcome"],
            registry=registry,
        )
        self.first_token_seconds = Histogram(
            "time_to_first_token_seconds",
            "Seconds from a completion's start to its first text.",
            buckets=SECONDS,
            registry=registry,
        )
        for name, state, help_text in (
            ("num_requests_waiting", "waiting", "Sequences that wait for a row."),
            ("num_requests_running", "running", "Sequences with a row that are not in a tool call."),
            ("num_requests_in_call", "in_call", "Sequences that wait for a tool."),
        ):
            gauge = Gauge(name, help_text, registry=registry)
            gauge.set_function(functools.partial(_count, backend, state))

    def saw_lookup(self, tool: str, lookup: Lookup) -> None:
        """Count a call that was looked for among kept results."""
        self.tool_lookups.labels(tool, lookup).inc()

    def completion(self) -> CompletionObserver:
        """Count one completion, which starts now."""
        return CompletionObserver(self)


class CompletionObserver:
    """Sees one completion's events; `end` must be called whatever happens."""

    def __init__(self, metrics: GatewayMetrics) -> None:
        self._metrics = metrics
        self._began = time.perf_counter()
        self._text_came = False
        self.outcome = "cancelled"
        """How the completion ended; as long as nothing else is known, its client left."""

    def saw(self, event: Event) -> None:
        """Count ``event``."""
        metrics = self._metrics
        match event:
            case TextDelta() if not self._text_came:
                self._text_came = True
                metrics.first_token_seconds.observe(time.perf_counter() - self._began)
            case CallFinished(record):
                outcome = "ok" if record.error is None else record.error.partition(":")[0]
                metrics.tool_calls.labels(record.tool, outcome).inc()
                if record.duration_ms > 0:  # 0: the call was refused before it was made
                    metrics.tool_seconds.labels(record.tool).observe(record.duration_ms / 1000)
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


def _count(backend: Callable[[], object | None], state: str) -> float:
    now = backend()
    return float(getattr(now.stats(), state)) if isinstance(now, HasStats) else 0.0
