"""``POST /v1/chat/completions``: messages become a prompt, whose completion is the answer. Without a chat template,
and at other APIs for chats, a 404 that shows what to send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from inference_gateway.http.answers import Answer, described_answer
from inference_gateway.http.chunks import Chunks
from inference_gateway.http.completions import COMPLETIONS_PATH, EXAMPLE
from inference_gateway.quotas import Quotas
from inference_gateway.serving.chat import ChatBody, ChatLogprobs, ChatResponse
from inference_gateway.serving.chat_template import ChatTemplate
from inference_gateway.serving.choices import Progress
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.planning import plan
from inference_gateway.serving.response import Logprobs
from toolformer.http_api import ApiError, request_id

CHAT_PATH: Final = "/v1/chat/completions"

_OTHER_PATHS: Final = ("/v1/responses", "/v1/messages")
"""Where clients of other APIs for chats send their requests."""

_EXAMPLE: Final = {"messages": [{"role": "user", "content": EXAMPLE["prompt"]}], "max_completion_tokens": 48}


def chat_routes(gateway: Gateway, quotas: Quotas, template: ChatTemplate | None) -> APIRouter:
    """The chat route of ``gateway``, if there is a ``template``; ``quotas`` hold the keys' shares."""
    router = APIRouter(tags=["completions"])

    async def nothing_here(request: Request) -> Response:
        why = "this model completes text and does not chat; " if template is None else ""
        where, example = (COMPLETIONS_PATH, EXAMPLE) if template is None else (CHAT_PATH, _EXAMPLE)
        message = f"there is nothing at {request.url.path!r}: {why}send POST {where} with {json.dumps(example)}"
        raise ApiError(404, message)

    for path in _OTHER_PATHS if template else (CHAT_PATH, *_OTHER_PATHS):
        router.add_api_route(path, nothing_here, methods=["GET", "POST"], include_in_schema=False)
    if template is None:
        return router

    @router.post(
        CHAT_PATH,
        summary="Answer a chat, calling tools on the way",
        response_model=None,
        responses=described_answer(ChatResponse, "answers"),
    )
    async def chat(
        request: Request,
        body: ChatBody = Body(openapi_examples={"arithmetic": {"value": _EXAMPLE}}),  # noqa: B008
    ) -> Response:
        completer = gateway.completer()
        client = request.state.client
        prompt = await asyncio.to_thread(template.prompt, body.texts(), completer.backend.tokenizer)
        try:
            planned = await plan(
                body.completion(prompt),
                completer,
                gateway.settings,
                request_id=request_id.get(),
                client=client,
                default_max_tokens=completer.backend.max_model_len,
            )
        except ApiError as error:
            error.param = body.own_name(error.param)
            raise
        answer = Answer(gateway, quotas, completer, planned, client, ChatChunks, "chatcmpl")
        return await answer.respond(
            request.receive, body, lambda response: ChatResponse.of(response, body.top_logprobs or 0)
        )

    return router


class ChatChunks(Chunks):
    """The same chunks as a chat's."""

    object = "chat.completion.chunk"

    def form(self, choice: Progress, fields: Mapping[str, Any], *, first: bool) -> dict[str, Any]:
        """See the base class."""
        chunk = dict(fields)
        text, logprobs = chunk.pop("text"), chunk["logprobs"]
        if logprobs:
            top = choice.planned.request.logprobs or 0
            chunk["logprobs"] = ChatLogprobs.of(Logprobs.model_validate(logprobs), top).model_dump()
        role = {"role": "assistant"} if first else {}
        return {**chunk, "delta": {**role, "content": text} if first or text else {}}
