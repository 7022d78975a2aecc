"""The gateway as an ASGI app."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final

from fastapi import Depends, FastAPI
from prometheus_client import CollectorRegistry
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from inference_gateway.http.admission import OPEN_PATHS, PLAYGROUND, Admission, RequireKey
from inference_gateway.http.chat_routes import CHAT_PATH, chat_routes
from inference_gateway.http.completions import COMPLETIONS_PATH, completion_routes
from inference_gateway.http.operations import operation_routes
from inference_gateway.http.token_routes import token_routes
from inference_gateway.quotas import Quotas
from inference_gateway.serving.chat_template import ChatTemplate
from inference_gateway.serving.gateway import Gateway
from inference_gateway.settings import GatewaySettings
from toolformer.http_api import (
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
from toolformer.http_api.hosts import MCP_PATH
from toolformer.http_api.mcp_endpoint import McpEndpoint

_METHODS: Final = frozenset({"get", "post"})
_SCHEME: Final = "ApiKey"
_UNAUTHORIZED: Final[dict[str, Any]] = {
    "description": "Unauthorized",
    "headers": {"WWW-Authenticate": {"schema": {"type": "string"}}},
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}},
}


def describe_access(app: FastAPI, *, keys_required: bool, open_paths: frozenset[str]) -> None:
    """Let the description of ``app`` say that all but ``open_paths`` need a key, if keys are required."""
    describe = app.openapi

    def described() -> dict[str, Any]:
        document = describe()
        if keys_required and _SCHEME not in document["components"].setdefault("securitySchemes", {}):
            document["components"]["securitySchemes"][_SCHEME] = {"type": "http", "scheme": "bearer"}
            for path, operations in document["paths"].items():
                if path not in open_paths:
                    for method in _METHODS & operations.keys():
                        operations[method]["security"] = [{_SCHEME: []}]
                        operations[method]["responses"]["401"] = _UNAUTHORIZED
        return document

    app.openapi = described  # type: ignore[method-assign]  # FastAPI's documented way to change the document


def http_app(
    gateway: Gateway,
    quotas: Quotas,
    metrics: CollectorRegistry,
    tracing: Tracing,
    running: Callable[[FastAPI], contextlib.AbstractAsyncContextManager[None]],
    mcp: McpEndpoint,
) -> FastAPI:
    """``gateway`` behind routes and middleware; ``running`` is entered while the app serves, ``mcp`` in it."""
    settings = gateway.settings
    template = ChatTemplate.of(settings)
    app = FastAPI(
        title="Toolformer gateway",
        description="OpenAI's completions with tools called in the middle of the text.",
        version="1",
        lifespan=running,
        redirect_slashes=False,
        docs_url=None,
        dependencies=[Depends(known_query)],
        redoc_url=None,
    )
    # What is added later runs earlier: an id first, then the key, then the body comes, and only then is room taken.
    app.add_middleware(HeadAsGet)
    app.add_middleware(
        Admission, quotas=quotas, paths=frozenset({COMPLETIONS_PATH} | ({CHAT_PATH} if template else set()))
    )
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes, seconds=settings.body_seconds)
    app.add_middleware(RequireKey, keys=gateway.keys, open_paths=open_paths(settings))
    install_error_handlers(app)
    install_metrics(app, metrics)
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
    app.include_router(chat_routes(gateway, quotas, template))
    app.include_router(token_routes(gateway))
    app.include_router(operation_routes(gateway))
    describe_access(app, keys_required=gateway.keys.required, open_paths=open_paths(settings))
    app.include_router(PLAYGROUND.routes())
    app.include_router(API_PAGE.routes())
    app.router.routes.append(Route(MCP_PATH, mcp, methods=["POST"]))
    return app


def open_paths(settings: GatewaySettings) -> frozenset[str]:
    """The paths that need no key."""
    return OPEN_PATHS if settings.metrics_need_key else OPEN_PATHS | {"/metrics"}
