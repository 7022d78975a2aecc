"""``POST /v1/completions``."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from inference_gateway.http.answers import Answer, described_answer
from inference_gateway.quotas import Quotas
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.planning import plan
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.serving.response import CompletionResponse
from toolformer.http_api import request_id

COMPLETIONS_PATH: Final = "/v1/completions"

EXAMPLE: Final = {
    "prompt": "There are 24 boxes with 17 books each. How many books are there altogether? The answer is",
    "max_tokens": 48,
}

_EXAMPLES: Final[dict[str, Any]] = {
    "arithmetic": {"value": EXAMPLE},
    "dated": {"value": {"prompt": "Today is", "max_tokens": 48, "tool_context": {"date": "2026-11-20"}}},
}


def completion_routes(gateway: Gateway, quotas: Quotas) -> APIRouter:
    """The completion route of ``gateway``; ``quotas`` hold the keys' shares."""
    router = APIRouter(tags=["completions"])

    @router.post(
        COMPLETIONS_PATH,
        summary="Complete text, calling tools on the way",
        response_model=None,
        responses=described_answer(CompletionResponse, "completions"),
    )
    async def complete(
        request: Request,
        body: CompletionBody = Body(openapi_examples=_EXAMPLES),  # noqa: B008
    ) -> Response:
        completer = gateway.completer()
        client = request.state.client
        planned = await plan(body, completer, gateway.settings, request_id=request_id.get(), client=client)
        answer = Answer(gateway, quotas, completer, planned, client)
        return await answer.respond(request.receive, body, lambda response: response)

    return router
