"""What happens around each RPC: its id, its span, its errors as statuses, a count and a line in the log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
from opentelemetry import context as trace_context
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter

from inference_gateway.grpc_api.status import GrpcStatus
from toolformer.http_api import REQUEST_ID_HEADER, ApiError, request_id
from toolformer.http_api.request_id import adopted

ServicerContext = grpc.aio.ServicerContext[Any, Any]

REQUEST_ID_KEY: Final = REQUEST_ID_HEADER.lower()
COMPLETE: Final = "/toolformer.v1.CompletionService/Complete"
_W3C: Final = TraceContextTextMapPropagator()

logger = logging.getLogger(__name__)


class Calls:
    """Counts RPCs in ``registry`` and makes their spans with ``tracer``."""

    def __init__(self, registry: CollectorRegistry, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._requests = Counter("grpc_requests", "gRPC requests answered.", ["method", "code"], registry=registry)

    @contextlib.asynccontextmanager
    async def around(self, method: str, context: ServicerContext) -> AsyncIterator[None]:
        """Run an RPC of ``method`` inside. An `ApiError` ends it with that status, any other error with INTERNAL."""
        metadata = {name: value for name, value in context.invocation_metadata() or () if isinstance(value, str)}
        own = adopted(metadata.get(REQUEST_ID_KEY, ""))
        token = request_id.set(own)
        # A method that does not exist must not become a label, or a client could make series without end.
        label = method if method == COMPLETE else "other"
        began = time.perf_counter()
        code = grpc.StatusCode.OK
        attributes = {"rpc.system": "grpc", "rpc.method": label.lstrip("/"), "toolformer.request_id": own}
        with self._tracer.start_as_current_span(
            label.lstrip("/"),
            _W3C.extract(metadata, trace_context.Context()),
            trace.SpanKind.SERVER,
            attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                await context.send_initial_metadata(((REQUEST_ID_KEY, own),))
                yield
            except asyncio.CancelledError:
                left = context.time_remaining()
                in_time = left is None or left > 0
                code = grpc.StatusCode.CANCELLED if in_time else grpc.StatusCode.DEADLINE_EXCEEDED
                raise
            except Exception as error:
                status = GrpcStatus.of(error if isinstance(error, ApiError) else _unforeseen(method, error))
                code = status.code
                await context.abort(status.code, status.message, status.trailers)
            finally:
                span.set_attribute("rpc.grpc.status_code", code.value[0])
                if code is grpc.StatusCode.INTERNAL:
                    span.set_status(trace.StatusCode.ERROR)
                self._requests.labels(label.rpartition("/")[2], code.name).inc()
                seconds = time.perf_counter() - began
                logger.info("%s %s %s, %.3f s", context.peer(), label, code.name, seconds)
                request_id.reset(token)


def _unforeseen(method: str, error: Exception) -> ApiError:
    logger.error("unhandled error in %s", method, exc_info=error)
    return ApiError(500, "the server met an unexpected error; it is in the server's log. Try again, or report it")
