"""Prometheus metrics: a registry for each app, and a middleware that counts and times requests."""

from __future__ import annotations

import time
from typing import Final

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from toolformer.http_api.middleware import HttpMiddleware, Sent

SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Histogram bounds that fit a sum (a millisecond) as well as a long completion (a minute)."""

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def install_metrics(app: FastAPI, registry: CollectorRegistry | None = None) -> CollectorRegistry:
    """Count and time ``app``'s requests and serve them at ``GET /metrics``.

    Returns:
        The app's own registry (``registry``, if one is given), for metrics of the app's subject. Each app has its
        own so that several can live in one process (tests do that) without counting for each other.
    """
    registry = registry or CollectorRegistry()
    ProcessCollector(registry=registry)
    app.add_middleware(RequestMetrics, registry=registry)

    @app.get("/metrics", summary="Metrics in Prometheus' text format", tags=["operation"], response_class=Response)
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return registry


class RequestMetrics(HttpMiddleware):
    """``http_requests_total``, ``http_request_duration_seconds`` by method, route and status.

    The route is its template (``/items/{id}``), never the path, and an unknown method or path has one label for all, so
    a client cannot make series without end. A streamed response is timed to its last byte.
    """

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        super().__init__(app)
        labels = ("method", "route", "status")
        self.requests = Counter("http_requests", "HTTP requests answered.", labels, registry=registry)
        self.duration = Histogram(
            "http_request_duration_seconds",
            "Seconds from a request's head to its response's end.",
            labels,
            buckets=SECONDS,
            registry=registry,
        )

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        sent, began = Sent(send), time.perf_counter()
        try:
            await self.app(scope, receive, sent)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            # The router below leaves its choice in the scope, which it shares with us.
            route = getattr(scope.get("route"), "path", "unmatched")
            # 500 is what the server answers if the application below raises before it answers.
            labels = (method, route, str(sent.status or 500))
            self.requests.labels(*labels).inc()
            self.duration.labels(*labels).observe(time.perf_counter() - began)
