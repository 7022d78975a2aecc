"""OpenTelemetry spans: off, unless the standard ``OTEL_*`` variables ask for them.

A trace that a caller began goes on either way: its context is taken from ``traceparent`` (W3C Trace Context), stands in
the log, and is there for whatever is called. Only what is exported depends on the variables.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from typing import Final, Protocol, Self

from opentelemetry import context, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from toolformer.http_api.logs import QUIET_PATHS
from toolformer.http_api.middleware import HttpMiddleware, Sent
from toolformer.http_api.request_id import request_id

logger = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_PROTOCOL: Final = "http/protobuf"
_CLOSE_SECONDS: Final = 5.0
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_W3C: Final = TraceContextTextMapPropagator()


class SpanProvider(Protocol):
    """What of the SDK's ``TracerProvider`` is used here."""

    def get_tracer(self, instrumenting_module_name: str, /) -> trace.Tracer: ...

    def shutdown(self) -> None:
        """Send what is left; may take its time."""
        ...


class Tracing:
    """Where spans go: to ``provider``, or nowhere.

    The provider is this object's, not the process's, so that several apps can live in one process (tests do that).
    """

    def __init__(self, provider: SpanProvider | None = None) -> None:
        self._provider = provider
        self.tracer: trace.Tracer = trace.NoOpTracer() if provider is None else provider.get_tracer("toolformer")

    @classmethod
    def from_environment(cls, service: str, environ: Mapping[str, str] = os.environ) -> Self:
        """Spans for an OTLP collector if ``environ`` names one, else none.

        Asked for are ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or ``..._TRACES_ENDPOINT``) or ``OTEL_TRACES_EXPORTER=otlp``; the
        SDK reads the other variables (headers, sampler, batches, resource) itself. ``service`` is the service's name
        where ``OTEL_SERVICE_NAME`` gives none.
        """
        exporter = environ.get("OTEL_TRACES_EXPORTER") or ("otlp" if any(map(environ.get, _ENDPOINTS)) else "none")
        if exporter == "none" or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return cls()
        protocol = next(filter(None, map(environ.get, _PROTOCOLS)), _PROTOCOL)
        if (exporter, protocol) != ("otlp", _PROTOCOL):
            logger.error(
                "no spans are sent: %s over %s is not supported; use otlp over %s", exporter, protocol, _PROTOCOL
            )
            return cls()
        # Imported here: they take as long as the rest of the app, and mostly nobody asks for spans.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        named = {} if environ.get("OTEL_SERVICE_NAME") else {"service.name": service}
        provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    async def close(self) -> None:
        """Send what is left, within a few seconds: a collector that is gone must not keep a process from ending."""
        if self._provider is not None:
            sending = threading.Thread(target=self._provider.shutdown, name="send the last spans", daemon=True)
            sending.start()
            await asyncio.to_thread(sending.join, _CLOSE_SECONDS)


class RequestSpans(HttpMiddleware):
    """A span for each request, the caller's trace continued; `RequestId` belongs around it.

    Probes have none: see `QUIET_PATHS`."""

    def __init__(self, app: ASGIApp, tracer: trace.Tracer) -> None:
        super().__init__(app)
        self._tracer = tracer

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["path"] in QUIET_PATHS:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        carrier = {name: headers[name] for name in ("traceparent", "tracestate") if name in headers}
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        sent = Sent(send)
        with self._tracer.start_as_current_span(
            method,
            _W3C.extract(carrier, context.Context()),
            trace.SpanKind.SERVER,
            {"http.request.method": method, "url.path": scope["path"], "toolformer.request_id": request_id.get()},
        ) as span:
            try:
                await self.app(scope, receive, sent)
            finally:
                # The router below leaves its choice in the scope, which it shares with us.
                if route := getattr(scope.get("route"), "path", None):
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.route", route)
                if sent.status:
                    span.set_attribute("http.response.status_code", sent.status)
                if sent.status >= 500:
                    span.set_status(trace.StatusCode.ERROR)
