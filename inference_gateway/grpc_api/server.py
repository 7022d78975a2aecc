"""The gRPC server: completions, health and reflection on a port of their own, from start to drain."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry.trace import Tracer
from prometheus_client import CollectorRegistry

from inference_gateway.grpc_api.calls import Calls
from inference_gateway.grpc_api.interceptor import KeyInterceptor
from inference_gateway.grpc_api.service import CompletionService
from inference_gateway.quotas import Quotas
from inference_gateway.serving.gateway import Gateway
from inference_gateway.settings import SettingsError, variable
from toolformer.http_api import ApiError
from toolformer.v1 import completion_pb2

SERVICE: Final = completion_pb2.DESCRIPTOR.services_by_name["CompletionService"].full_name
READINESS_SECONDS: Final = 0.5
"""How often the health service looks whether completions are taken."""

_SERVING: Final = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING: Final = health_pb2.HealthCheckResponse.NOT_SERVING

logger = logging.getLogger(__name__)


class GrpcServer:
    """Serves ``gateway`` over gRPC; it takes part in ``quotas`` and counts in ``registry``."""

    def __init__(self, gateway: Gateway, quotas: Quotas, registry: CollectorRegistry, tracer: Tracer) -> None:
        self._gateway = gateway
        self._quotas = quotas
        self._calls = Calls(registry, tracer)
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None
        self._draining: asyncio.Task[None] | None = None
        self.port = 0
        """The port it listens on while it runs."""

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve as long as the context is open; leaving it drains.

        Raises:
            SettingsError: if the port is not available.
        """
        settings = self._gateway.settings
        server = self._server = grpc.aio.server(
            interceptors=[KeyInterceptor(self._gateway.keys, self._calls)],
            options=[
                ("grpc.max_receive_message_length", settings.max_body_bytes),
                ("grpc.so_reuseport", 0),  # else a second server would share the port in silence
                # A client that vanished without a word is noticed, and its sequence freed.
                ("grpc.keepalive_time_ms", 30_000),
                ("grpc.keepalive_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
            ],
        )
        server.add_generic_rpc_handlers((CompletionService(self._gateway, self._quotas, self._calls).handlers(),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        try:
            self.port = server.add_insecure_port(f"{shown}:{settings.grpc_port}")
        except RuntimeError:
            message = (
                f"cannot listen on {settings.host} port {settings.grpc_port}; stop what uses it, or choose another"
            )
            raise SettingsError(f"{variable('grpc_port')}: {message}") from None
        await server.start()
        logger.info("listening for gRPC on %s:%d", shown, self.port)
        watching = asyncio.create_task(self._report_health(), name="report health")
        try:
            yield
        finally:
            watching.cancel()
            self.drain()
            assert self._draining is not None
            await asyncio.gather(watching, self._draining, return_exceptions=True)

    def drain(self) -> None:
        """Take no more RPCs from now on; those that run get ``drain_seconds`` to end. Safe to repeat."""
        if self._draining is None and self._server is not None:
            self._draining = asyncio.create_task(self._drain(self._server), name="drain gRPC")

    async def _drain(self, server: grpc.aio.Server) -> None:
        await self._health.enter_graceful_shutdown()
        await server.stop(self._gateway.settings.drain_seconds)

    async def _report_health(self) -> None:
        while True:
            for service in ("", SERVICE):
                await self._health.set(service, _SERVING if self._takes_completions() else _NOT_SERVING)
            await asyncio.sleep(READINESS_SECONDS)

    def _takes_completions(self) -> bool:
        try:
            self._gateway.ready_backend()
        except ApiError:
            return False
        return True
