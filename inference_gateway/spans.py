"""The OpenTelemetry spans of a completion: the whole of it, its prefill, and each tool call."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from inference_gateway.actions import Action
from inference_gateway.core import CompletionRequest, Finished
from toolformer.tool_client import ToolResult

_W3C: Final = TraceContextTextMapPropagator()


class CompletionSpans:
    """The spans of one completion, which starts now, below the span in which this is made; `end` must be called.

    ``prefill`` lasts until the first thing comes of the completion: it includes the wait for a place in the cache.
    """

    def __init__(self, tracer: trace.Tracer, request: CompletionRequest) -> None:
        self._tracer = tracer
        counts = {
            "toolformer.prompt_tokens": len(request.visible_prompt_ids),
            "toolformer.hidden_prompt_tokens": request.hidden,
            "toolformer.max_tokens": request.max_tokens,
        }
        self._whole = tracer.start_span("completion", attributes=counts)
        self._inside = trace.set_span_in_context(self._whole)
        self._prefill: trace.Span | None = tracer.start_span("prefill", self._inside)

    def came(self, action: Action) -> None:
        """Something came of the completion."""
        if self._prefill is not None:
            self._prefill.end()
            self._prefill = None
        if isinstance(action, Finished):
            usage = action.usage
            self._whole.set_attributes(
                {
                    "toolformer.finish_reason": action.reason,
                    "toolformer.completion_tokens": usage.completion_tokens,
                    "toolformer.tool_tokens": usage.spliced_tokens,
                    "toolformer.cached_tokens": usage.cached_tokens,
                }
            )
            if action.reason == "error":
                self._whole.set_status(trace.StatusCode.ERROR, action.message)

    @contextlib.contextmanager
    def call(self, tool: str, *, early: bool) -> Iterator[CallSpan]:
        """A call of ``tool``, for as long as the context is open. ``early``: it began before the sequence waited."""
        attributes: dict[str, str | bool] = {"toolformer.tool": tool, "toolformer.early": early}
        with self._tracer.start_as_current_span(
            f"call {tool}", self._inside, trace.SpanKind.CLIENT, attributes
        ) as span:
            yield CallSpan(span)

    def end(self) -> None:
        """The completion is over, however it ended."""
        if self._prefill is not None:
            self._prefill.end()
        self._whole.end()


class CallSpan:
    """The span of a tool call."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def answered(self, result: ToolResult) -> None:
        """The call ended with ``result``."""
        outcome = "ok" if result.error is None else str(result.error.code)
        self._span.set_attributes({"toolformer.outcome": outcome, "toolformer.kept": result.cached})
        if result.error is not None:
            self._span.set_status(trace.StatusCode.ERROR, outcome)


def trace_headers() -> dict[str, str]:
    """The headers by which a service continues the trace in whose span this is called; none outside of a trace."""
    headers: dict[str, str] = {}
    _W3C.inject(headers)
    return headers
