"""The app factory: one engine behind the HTTP contract that all tool services share."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Body, Depends, FastAPI, Request
from pydantic import BaseModel
from starlette.responses import Response
from starlette.routing import Route

from services.base.engine import Engine, NotReady, ServiceInfo, ToolFailure
from services.base.mcp_endpoint import one_tool
from services.base.runner import CallAnswer, ToolRunner
from services.base.wire import (
    VERSION_HEADER,
    BatchRequest,
    BatchResponse,
    CallError,
    CallRequest,
    CallResponse,
    ToolDescription,
    batch_too_large,
)
from toolformer.http_api import (
    API_PAGE,
    ApiError,
    BodyLimit,
    HeadAsGet,
    RequestId,
    RequestSpans,
    Tracing,
    documented_errors,
    install_error_handlers,
    install_metrics,
    known_query,
)
from toolformer.http_api.errors import error_response


class Health(BaseModel):
    """The process is up and its event loop turns."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """The engine can answer."""

    status: Literal["ready"] = "ready"


def create_app(
    info: ServiceInfo, engine: Engine, router: APIRouter | None = None, tracing: Tracing | None = None
) -> FastAPI:
    """The FastAPI app of a tool service.

    Args:
        info: what the service says of itself, and its limits.
        engine: what the tool does; started in the background when the app starts.
        router: the service's own typed routes. They run only when the engine is ready and count among the calls in
            flight; they may raise `ToolFailure` (422, with its code) and `NotReady` (503).
        tracing: where the spans of requests go; by default what the environment says.

    Returns:
        An app with POST /call, POST /calls, GET /tool, GET /health, GET /ready, GET /metrics, MCP at /mcp, OpenAPI at
        /docs.
    """
    tracing = tracing or Tracing.from_environment(f"toolformer-{info.service.replace('_', '-')}")

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            async with mcp.running():
                runner.begin()
                try:
                    yield
                finally:
                    await runner.end()
        finally:
            await tracing.close()

    app = FastAPI(
        title=info.title,
        description=f"{info.description}\n\nThe same tool speaks MCP (streamable HTTP, stateless) at `/mcp`.",
        version=info.version,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(known_query)],
    )
    app.add_middleware(HeadAsGet)
    app.add_middleware(BodyLimit, max_bytes=info.max_body_bytes)
    install_error_handlers(app)
    registry = install_metrics(app)
    app.add_middleware(RequestSpans, tracer=tracing.tracer)
    app.add_middleware(RequestId)
    app.state.runner = runner = ToolRunner(info, engine, registry)
    mcp = one_tool(runner)

    _add_error_handlers(app)
    _add_operation_routes(app, runner)
    _add_call_routes(app, runner)
    app.router.routes.append(Route("/mcp", mcp, methods=["POST"]))
    app.include_router(API_PAGE.routes())
    if router is not None:

        async def admitted(response: Response) -> AsyncIterator[None]:  # a plain one would be run in other threads
            response.headers[VERSION_HEADER] = runner.version
            with runner.admitted():
                yield

        app.include_router(router, dependencies=[Depends(admitted)], responses=documented_errors(422, 503))
    return app


def _add_error_handlers(app: FastAPI) -> None:
    async def not_ready(_: Request, error: NotReady) -> Response:
        return error_response(ApiError(503, str(error), code="not_ready", headers={"Retry-After": "2"}))

    async def tool_failure(_: Request, error: ToolFailure) -> Response:
        return error_response(ApiError(422, error.message, code=error.code))

    app.add_exception_handler(NotReady, not_ready)  # type: ignore[arg-type]
    app.add_exception_handler(ToolFailure, tool_failure)  # type: ignore[arg-type]


def _add_operation_routes(app: FastAPI, runner: ToolRunner) -> None:
    @app.get("/health", summary="Whether the process is up", tags=["operation"])
    async def health() -> Health:
        return Health()

    @app.get("/ready", summary="Whether calls can be answered", tags=["operation"], responses=documented_errors(503))
    async def ready(response: Response) -> Readiness:
        runner.require_ready()
        response.headers[VERSION_HEADER] = runner.version
        return Readiness()


def _add_call_routes(app: FastAPI, runner: ToolRunner) -> None:
    info = runner.info
    description = ToolDescription.of(info)

    @app.get("/tool", summary="What the tool does, and its limits", tags=["calls"])
    async def describe() -> ToolDescription:
        return description

    call: dict[str, Any] = {"input": info.example_input}
    if info.takes_context:
        call["context"] = {"date": "2026-11-20"}
    answer = {
        "tool": info.tool,
        "input": info.example_input,
        "output": info.example_output,
        "error": None,
        "duration_ms": 0.2,
    }

    def respond(request: CallRequest, answered: CallAnswer) -> CallResponse:
        outcome = answered.outcome
        if isinstance(outcome, str):
            output, error = outcome, None
        else:
            output, error = None, CallError(code=outcome.code, message=outcome.message)
        return CallResponse(
            tool=info.tool, input=request.input, output=output, error=error, duration_ms=answered.duration_ms
        )

    @app.post(
        "/call",
        summary=f"Call {info.tool}",
        description=f"{info.description}\n\nInput: {info.input_description}",
        tags=["calls"],
        responses=_documented_answer(answer),
    )
    async def call_tool(
        response: Response,
        request: CallRequest = Body(openapi_examples=_example(call)),  # noqa: B008
    ) -> CallResponse:
        response.headers[VERSION_HEADER] = runner.version
        [answered] = await runner.answer([request.as_call()])
        return respond(request, answered)

    @app.post(
        "/calls",
        summary=f"Call {info.tool} several times at once",
        description=f"At most {info.max_batch} calls, answered together and in order.",
        tags=["calls"],
        responses=_documented_answer({"calls": [answer]}),
    )
    async def call_tool_in_batch(
        response: Response,
        request: BatchRequest = Body(openapi_examples=_example({"calls": [call]})),  # noqa: B008
    ) -> BatchResponse:
        if len(request.calls) > info.max_batch:
            raise batch_too_large(len(request.calls), info.max_batch)
        response.headers[VERSION_HEADER] = runner.version
        answers = await runner.answer([one.as_call() for one in request.calls])
        return BatchResponse(calls=list(map(respond, request.calls, answers)))


def _example(value: dict[str, Any]) -> dict[str, Any]:
    return {"example": {"value": value}}


def _documented_answer(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {"application/json": {"example": example}}}, **documented_errors(400, 413, 422, 503)}
