"""``POST /v1/completions``: one answer as JSON, or the text as it comes in server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Final

from fastapi import APIRouter, Body, Request
from starlette.responses import Response

from http_api import ApiError, documented_errors, error_body, request_id
from inference_gateway.completion import Completer
from inference_gateway.http import event_stream
from inference_gateway.http.chunks import Chunks, UsageWanted
from inference_gateway.http.connection import ClientLeft, while_connected
from inference_gateway.quotas import OverQuota, Quotas
from inference_gateway.serving.choices import Progress, RunningChoices, total_usage
from inference_gateway.serving.completion_log import log_completion
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.planning import Plan, plan
from inference_gateway.serving.protocol import CompletionBody, StreamOptions
from inference_gateway.serving.refusals import no_room
from inference_gateway.serving.response import CompletionResponse

logger = logging.getLogger(__name__)

COMPLETIONS_PATH: Final = "/v1/completions"

_CHAT_PATHS: Final = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
"""Where clients of chat models send their requests."""

_INSTEAD: Final = {"prompt": "Each of the 24 boxes holds 17 books, so together they hold", "max_tokens": 48}

CLIENT_CLOSED_REQUEST: Final = 499
"""What the log and the metrics say of a request whose client left; nobody receives it."""

_EXAMPLES: Final[dict[str, Any]] = {
    "arithmetic": {"value": _INSTEAD},
    "dated": {"value": {"prompt": "Today is", "max_tokens": 48, "tool_context": {"date": "2026-11-20"}}},
}


def completion_routes(gateway: Gateway, quotas: Quotas) -> APIRouter:
    """The completion route of ``gateway``; ``quotas`` hold the keys' shares."""
    router = APIRouter(tags=["completions"])

    @router.post(
        COMPLETIONS_PATH,
        summary="Complete text, calling tools on the way",
        response_model=None,
        responses={
            200: {
                "model": CompletionResponse,
                "description": "The completions; with 'stream': true, their events.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            },
            **documented_errors(400, 404, 413, 422, 429, 500, 503),
        },
    )
    async def complete(
        request: Request,
        body: CompletionBody = Body(openapi_examples=_EXAMPLES),  # noqa: B008
    ) -> Response:
        completer = gateway.completer()
        client = request.state.client
        planned = await plan(body, completer, gateway.settings, request_id=request_id.get(), client=client)
        answer = _Answer(gateway, quotas, completer, planned, client)
        if body.stream:
            return event_stream.EventStream(
                answer.events(usage=_usage_wanted(body.stream_options), tool_events=bool(body.stream_tool_events))
            )
        try:
            response = await while_connected(request.receive, answer.whole())
        except ClientLeft:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return Response(response.model_dump_json(), media_type="application/json")

    async def chat(request: Request) -> Response:
        message = (
            f"there is nothing at {request.url.path!r}: this model completes text and does not chat; "
            f"send POST {COMPLETIONS_PATH} with {json.dumps(_INSTEAD)}"
        )
        raise ApiError(404, message)

    for path in _CHAT_PATHS:
        router.add_api_route(path, chat, methods=["GET", "POST"], include_in_schema=False)
    return router


def _usage_wanted(options: StreamOptions | None) -> UsageWanted:
    if not (options and options.include_usage):
        return "never"
    return "always" if options.continuous_usage_stats else "last"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one request."""

    gateway: Gateway
    quotas: Quotas
    completer: Completer
    plan: Plan
    client: str | None
    id: str = field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))
    began: float = field(default_factory=time.perf_counter)

    async def whole(self) -> CompletionResponse:
        """All choices, once all have ended.

        Raises:
            ApiError: see `RunningChoices.next`.
        """
        progress = self._progress()
        try:
            async with self._running() as running:
                while not all(choice.finished for choice in progress):
                    if (item := await running.next()) is not None:
                        index, event = item
                        progress[index].take(event)
        finally:
            self._log(progress)
        choices = []
        for choice in progress:
            choices.append(choice.choice())
            await asyncio.sleep(0)  # the log probabilities of 16 long prompts take 0.3 s, when others may have a turn
        return CompletionResponse(
            id=self.id,
            created=self.created,
            model=self.plan.model,
            choices=choices,
            usage=total_usage(progress, self.plan.per_prompt),
        )

    async def events(self, *, usage: UsageWanted, tool_events: bool) -> AsyncGenerator[bytes, None]:
        """The stream's bytes: chunks, one terminal chunk a choice, the ``usage`` if wanted, ``[DONE]``.

        Raises:
            ApiError: before the first bytes only; later trouble is told in the stream.
        """
        progress = self._progress()
        chunks = Chunks(self.plan, progress, id=self.id, created=self.created, usage=usage, tool_events=tool_events)
        began = False
        try:
            async with self._running() as running:
                while not all(choice.finished for choice in progress):
                    item = await running.next(self.gateway.settings.keep_alive_seconds)
                    if not began:
                        began = True
                        if echoed := chunks.begin():
                            yield echoed
                    if item is None:
                        yield event_stream.KEEP_ALIVE
                        continue
                    index, event = item
                    progress[index].take(event)
                    if piece := chunks.of(progress[index], event):
                        yield piece
            if usage != "never":
                yield chunks.usage()
        except Exception as error:
            if not began:
                raise
            yield event_stream.data(_told(error))
        finally:
            self._log(progress)
        yield event_stream.DONE

    def _progress(self) -> list[Progress]:
        return [Progress(index, self.plan) for index in range(len(self.plan.choices))]

    def _log(self, progress: list[Progress]) -> None:
        seconds = time.perf_counter() - self.began
        with_text = self.gateway.settings.log_prompts
        log_completion(self.id, self.client, self.plan, progress, seconds=seconds, with_text=with_text)

    @contextlib.asynccontextmanager
    async def _running(self) -> AsyncGenerator[RunningChoices, None]:
        """The choices, within the share of the client's key."""
        with contextlib.ExitStack() as share:
            try:
                share.enter_context(self.quotas.widened(self.client, len(self.plan.choices)))
            except OverQuota as over:
                raise no_room(over) from over
            async with RunningChoices(self.completer, self.plan, self.gateway.metrics) as running:
                yield running


def _told(error: Exception) -> dict[str, Any]:
    """What a client whose stream has begun is told of ``error``."""
    if isinstance(error, ApiError):
        return dict(error_body(error.status, error.message, param=error.param, code=error.code))
    logger.error("a completion's stream broke off", exc_info=error)
    return dict(error_body(500, "the server met an unexpected error; it is in the server's log"))
