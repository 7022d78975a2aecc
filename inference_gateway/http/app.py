"""The app factory."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.responses import HTMLResponse

from http_api import BodyLimit, install_error_handlers, install_metrics
from inference_gateway.backends.base import Backend
from inference_gateway.http.completions import completion_routes
from inference_gateway.http.gateway import Gateway
from inference_gateway.http.operations import operation_routes
from inference_gateway.http.request_id import RequestId
from inference_gateway.settings import GatewaySettings
from toolformer.tools import ToolRegistry

_PAGE: Final = Path(__file__).parents[1] / "playground" / "index.html"
_PAGE_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page is one file that brings its own style and script and speaks to this gateway alone."""


def create_app(
    load_backend: Callable[[], Backend], registry: ToolRegistry, settings: GatewaySettings | None = None
) -> FastAPI:
    """The gateway as an ASGI app.

    Args:
        load_backend: gives a backend that is not started; called in a thread when the app starts, so that ``/health``
            answers while a model loads. An exception leaves the app up and not ready, and ``/ready`` says why.
        registry: the tools that completions may call.
        settings: limits and defaults of requests; by default what the environment says.

    Raises:
        SettingsError: if ``settings`` are to be read from the environment and a variable there cannot hold.
    """
    settings = settings or GatewaySettings.read()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with gateway.running():
            yield

    app = FastAPI(
        title="Toolformer gateway",
        description="OpenAI's completions with tools called in the middle of the text.",
        version="1",
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    install_error_handlers(app)
    gateway = Gateway(load_backend, registry, settings, install_metrics(app))
    app.add_middleware(RequestId)  # the outermost, so that refusals carry the id too
    app.include_router(completion_routes(gateway))
    app.include_router(operation_routes(gateway))
    page = _PAGE.read_text(encoding="utf-8")

    @app.get("/", include_in_schema=False)
    async def playground() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": _PAGE_POLICY})

    return app
