"""The answer to a request for completions or for a chat's next message: as JSON, or as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel
from starlette.responses import Response
from starlette.types import Receive

from inference_gateway.completion import Completer
from inference_gateway.http import event_stream
from inference_gateway.http.chunks import Chunks, UsageWanted
from inference_gateway.http.event_stream import ClientLeft, while_connected
from inference_gateway.quotas import OverQuota, Quotas
from inference_gateway.serving.choices import Progress, RunningChoices, total_usage
from inference_gateway.serving.completion_log import log_completion
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.planning import Plan
from inference_gateway.serving.protocol import GenerationBody, StreamOptions
from inference_gateway.serving.refusals import no_room
from inference_gateway.serving.response import CompletionResponse
from toolformer.http_api import ApiError, documented_errors, error_body

logger = logging.getLogger(__name__)

CLIENT_CLOSED_REQUEST: Final = 499
"""What the log and the metrics say of a request whose client left; nobody receives it."""


def described_answer(model: type[BaseModel], name: str) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an answer, whose ``name`` is such as ``completions``, and of the errors in its place."""
    events = {"text/event-stream": {"schema": {"type": "string"}}}
    answered = {"model": model, "description": f"The {name}; with 'stream': true, their events.", "content": events}
    return {200: answered, **documented_errors(400, 404, 413, 422, 429, 500, 503)}


@dataclass(slots=True)
class Answer:
    """The answer to one request; ``chunks`` and ``prefix`` (of its id) are those of the API that was asked."""

    gateway: Gateway
    quotas: Quotas
    completer: Completer
    plan: Plan
    client: str | None
    chunks: type[Chunks] = Chunks
    prefix: str = "cmpl"
    id: str = field(init=False)
    created: int = field(default_factory=lambda: int(time.time()))
    began: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self.id = f"{self.prefix}-{uuid.uuid4().hex}"

    async def respond(
        self, receive: Receive, body: GenerationBody, written: Callable[[CompletionResponse], BaseModel]
    ) -> Response:
        """What ``body`` asks for: the events, or ``written`` of the whole answer."""
        if body.stream:
            usage = _usage_wanted(body.stream_options)
            return event_stream.EventStream(self.events(usage=usage, tool_events=bool(body.stream_tool_events)))
        try:
            response = await while_connected(receive, self.whole())
        except ClientLeft:
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        return Response(written(response).model_dump_json(), media_type="application/json")

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
            ApiError: before the first bytes only; later trouble is reported in the stream.
        """
        progress = self._progress()
        chunks = self.chunks(
            self.plan, progress, id=self.id, created=self.created, usage=usage, tool_events=tool_events
        )
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
            yield event_stream.data(_error_object(error))
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


def _usage_wanted(options: StreamOptions | None) -> UsageWanted:
    if not (options and options.include_usage):
        return "never"
    return "always" if options.continuous_usage_stats else "last"


def _error_object(error: Exception) -> dict[str, Any]:
    """What a client whose stream has begun reads of ``error``."""
    if isinstance(error, ApiError):
        return dict(error_body(error.status, error.message, param=error.param, code=error.code))
    logger.error("a completion's stream broke off", exc_info=error)
    return dict(error_body(500, "the server met an unexpected error; it is in the server's log"))
