"""The app factory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from fastapi import Depends, FastAPI
from starlette.middleware.cors import CORSMiddleware

from http_api import (
    API_PAGE,
    REQUEST_ID_HEADER,
    BodyLimit,
    HeadAsGet,
    RequestId,
    RequestSpans,
    Tracing,
    install_error_handlers,
    install_metrics,
    known_query,
)
from inference_gateway.api_keys import ApiKeyError, ApiKeys
from inference_gateway.backends.base import Backend
from inference_gateway.http.access import OPEN_PATHS, Admission, RequireKey
from inference_gateway.http.completions import COMPLETIONS_PATH, completion_routes
from inference_gateway.http.description import describe_access
from inference_gateway.http.operations import operation_routes
from inference_gateway.http.playground import PLAYGROUND
from inference_gateway.quotas import Quotas
from inference_gateway.serving.gateway import Gateway
from inference_gateway.settings import GatewaySettings, SettingsError, variable
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

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with gateway.running(), rpc.running() if rpc else contextlib.nullcontext():
                yield
        finally:
            await tracing.close()

    app = FastAPI(
        title="Toolformer gateway",
        description="OpenAI's completions with tools called in the middle of the text.",
        version="1",
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        dependencies=[Depends(known_query)],
        redoc_url=None,
    )
    keys = _api_keys(settings)
    quotas = Quotas(
        settings.max_requests,
        concurrent_each=settings.key_max_requests,
        per_minute_each=settings.key_requests_per_minute,
    )
    # What is added later runs earlier: an id first, then the key, then the body comes, and only then is room taken.
    app.add_middleware(HeadAsGet)
    app.add_middleware(Admission, quotas=quotas, path=COMPLETIONS_PATH)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes, seconds=settings.body_seconds)
    app.add_middleware(RequireKey, keys=keys, open_paths=open_paths(settings))
    install_error_handlers(app)
    metrics = install_metrics(app)
    gateway = Gateway(load_backend, registry, settings, metrics, keys, cache, tracing.tracer)
    rpc = None
    if settings.grpc_port is not None:
        # Imported here: grpc costs memory, and mostly nobody asks for it (decision record 011).
        from inference_gateway.grpc_api.server import GrpcServer

        rpc = GrpcServer(gateway, quotas, metrics, tracing.tracer)
    app.state.grpc_server = rpc
    if origins := [origin.strip() for origin in settings.cors_origins.split(",") if origin.strip()]:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", REQUEST_ID_HEADER, "traceparent", "tracestate"],
            expose_headers=[REQUEST_ID_HEADER, "Retry-After", "WWW-Authenticate"],
        )
    app.add_middleware(RequestSpans, tracer=tracing.tracer)
    app.add_middleware(RequestId)  # the outermost, so that refusals carry the id too
    app.include_router(completion_routes(gateway, quotas))
    app.include_router(operation_routes(gateway))
    describe_access(app, keys_required=keys.required, open_paths=open_paths(settings))
    app.include_router(PLAYGROUND.routes())
    app.include_router(API_PAGE.routes())
    return app


def open_paths(settings: GatewaySettings) -> frozenset[str]:
    """The paths that need no key."""
    return OPEN_PATHS if settings.metrics_need_key else OPEN_PATHS | {"/metrics"}


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
