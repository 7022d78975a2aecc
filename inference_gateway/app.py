"""The composition root: the one place where the gateway and what serves it are put together."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from inference_gateway.api_keys import ApiKeyError, ApiKeys
from inference_gateway.backends.base import Backend
from inference_gateway.http.http_app import http_app
from inference_gateway.http.mcp_routes import mcp_endpoint
from inference_gateway.quotas import Quotas
from inference_gateway.serving.gateway import Gateway
from inference_gateway.settings import GatewaySettings, SettingsError, variable
from toolformer.http_api import Tracing
from toolformer.result_cache import ResultCache
from toolformer.tools import ToolRegistry


def create_app(
    load_backend: Callable[[], Backend],
    registry: ToolRegistry,
    settings: GatewaySettings | None = None,
    cache: ResultCache | None = None,
    tracing: Tracing | None = None,
) -> FastAPI:
    """The gateway as an ASGI app.

    Args:
        load_backend: gives a backend that is not started; called in a thread when the app starts, so that ``/health``
            answers while a model loads. An exception leaves the app up and not ready, and ``/ready`` says why.
        registry: the tools that completions may call.
        settings: limits and defaults of requests; by default what the environment says.
        cache: keeps tools' results; by default none are kept.
        tracing: where spans go; by default what the environment says.

    Returns:
        The app. Its ``state.grpc_server`` is what serves gRPC beside it while it runs, or ``None``.

    Raises:
        SettingsError: if ``settings`` are to be read from the environment and a variable there cannot hold, or if the
            API keys cannot be read.
    """
    settings = settings or GatewaySettings.read()
    tracing = tracing or Tracing.from_environment("toolformer-gateway")
    keys = _api_keys(settings)
    quotas = Quotas(
        settings.max_requests,
        concurrent_each=settings.key_max_requests,
        per_minute_each=settings.key_requests_per_minute,
    )
    metrics = CollectorRegistry()
    gateway = Gateway(load_backend, registry, settings, metrics, keys, cache, tracing.tracer)
    rpc = None
    if settings.grpc_port is not None:
        # Imported here: grpc costs memory, and mostly nobody asks for it (decision record 011).
        from inference_gateway.grpc_api.server import GrpcServer

        rpc = GrpcServer(gateway, quotas, metrics, tracing.tracer)

    @contextlib.asynccontextmanager
    async def running(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with gateway.running(), rpc.running() if rpc else contextlib.nullcontext(), mcp.running():
                yield
        finally:
            await tracing.close()

    mcp = mcp_endpoint(gateway, quotas)
    app = http_app(gateway, quotas, metrics, tracing, running, mcp)
    app.state.grpc_server = rpc
    return app


def _api_keys(settings: GatewaySettings) -> ApiKeys:
    listed, file = settings.api_keys.get_secret_value(), settings.api_keys_file
    try:
        keys = ApiKeys(listed, file)
    except ApiKeyError as error:
        raise SettingsError(f"{variable('api_keys' if file is None else 'api_keys_file')}: {error}") from error
    for field in ("key_max_requests", "key_requests_per_minute"):
        if getattr(settings, field) is not None and not keys.required:
            raise SettingsError(f"{variable(field)} limits each API key; set {variable('api_keys')} as well")
    return keys
