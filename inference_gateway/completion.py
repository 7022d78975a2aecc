"""One completion, from request to terminal event: backend steps, decoding, tools, events.

The machine decides, the backend computes, the tool client calls; this module joins them. Whatever happens, a stream
that is read to its end gives exactly one :class:`~inference_gateway.core.Finished`, and a stream that is closed
early frees its sequence, also during a call."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import partial
from typing import Literal, Protocol

from opentelemetry.trace import NoOpTracer, Tracer

from inference_gateway.actions import CallAhead, Keep
from inference_gateway.backends.base import Backend, Session
from inference_gateway.core import (
    CallFinished,
    CallStarted,
    CompletionRequest,
    Event,
    ToolCallRecord,
)
from inference_gateway.spans import CompletionSpans, trace_headers
from toolformer.api_call import ApiCall, splice_result
from toolformer.tool_client import ToolResult
from toolformer.tool_wire import OF_THE_CLIENT, ToolError, without_addresses
from toolformer.tools import Tool, ToolRegistry

logger = logging.getLogger(__name__)


class ToolCaller(Protocol):
    """The part of :class:`toolformer.tool_client.ToolClient` used here. It never raises for a tool's trouble."""

    async def call(
        self,
        name: str,
        input: str,
        *,
        date: dt.date | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the client keeps it over all its retries
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult: ...


class Completer:
    """Completes prompts with tools. ``tracer`` makes the spans of completions and of their tool calls; ``saw_early`` is
    called with calls that began early."""

    def __init__(
        self,
        backend: Backend,
        registry: ToolRegistry,
        tools: ToolCaller,
        tracer: Tracer | None = None,
        saw_early: SawEarly = lambda tool, outcome: None,
    ) -> None:
        self.backend = backend
        self.registry = registry
        self._tools = tools
        self._tracer = tracer or NoOpTracer()
        self._saw_early = saw_early

    async def stream(self, request: CompletionRequest) -> AsyncGenerator[Event, None]:
        """The events of one completion.

        Raises:
            BackendBusy: before the first event, if no more completions are taken now.
            UnknownTool: if ``request.tools`` names a tool that the registry lacks.
        """
        offered = {name: self.registry.get(name) for name in request.tools}
        deadline = time.monotonic() + request.timeout
        session = self.backend.open(request, {tool.name: tool for tool in self.registry})
        early = EarlyCall(self._saw_early)
        spans = CompletionSpans(self._tracer, request)
        # The wall-clock limit ends the sequence wherever it is; the terminal event then comes the usual way.
        end_late = partial(session.finish, "timeout", f"the completion took longer than {request.timeout:g} s")
        alarm = asyncio.get_running_loop().call_later(request.timeout, end_late)
        try:
            async for action in session:
                spans.came(action)
                if isinstance(action, CallAhead):
                    call = action.call
                    if offered[call.tool].pure:
                        early.begin(call, self._ask(call, request, offered[call.tool], deadline, spans, early=True))
                elif not isinstance(action, Keep):
                    yield action
                if isinstance(action, CallStarted):
                    began, call, tool = time.monotonic(), action.call, offered[action.call.tool]
                    result = await (early.take(call) or self._ask(call, request, tool, deadline, spans))
                    if time.monotonic() >= deadline:  # the alarm is due: nothing is decoded in between
                        end_late()
                    yield CallFinished(self._resume(session, tool, action, result, began))
        finally:
            alarm.cancel()
            early.drop()
            session.close()
            spans.end()

    async def _ask(
        self,
        call: ApiCall,
        request: CompletionRequest,
        tool: Tool,
        deadline: float,
        spans: CompletionSpans,
        *,
        early: bool = False,
    ) -> ToolResult:
        """Call the tool, within its own limit and the completion's."""
        limit = tool.timeout_s if request.tool_timeout is None else request.tool_timeout
        with spans.call(call.tool, early=early) as span:
            result = await self._tools.call(
                call.tool,
                call.input,
                date=request.date if tool.takes_date else None,
                timeout=max(0.0, min(limit, deadline - time.monotonic())),
                headers={**trace_headers(), "x-request-id": request.request_id},
            )
            span.answered(result)
        return result

    def _resume(
        self, session: Session, tool: Tool, waited: CallStarted, result: ToolResult, began: float
    ) -> ToolCallRecord:
        """Resume the session with or without a result, and say how the call went that was waited for since
        ``began``."""
        output, error = None, None
        if result.error is not None:
            error = client_message(result.error)
        else:
            spliced = splice_result(result.output or "", self.backend.tokenizer, max_tokens=tool.max_result_tokens)
            if spliced is None:
                error = "no_answer: the tool's answer is empty"
            elif len(spliced.ids) >= session.room:
                error = f"context_full: the answer does not fit the model's {self.backend.max_model_len} tokens"
            else:
                output = spliced.text
                session.splice(spliced)
        if error is not None:
            session.give_up()
        seconds = time.monotonic() - began
        return ToolCallRecord(waited.call.tool, waited.call.input, output, error, waited.offset, 1000 * seconds)


def client_message(error: ToolError) -> str:
    """What clients read of ``error``, ``code: message``; where services live is for the log alone."""
    message = error.message
    if error.code in OF_THE_CLIENT and (message := without_addresses(message)) != error.message:
        logger.info("a call failed: %s", error.message)
    return f"{error.code}: {message}"


SawEarly = Callable[[str, Literal["used", "wasted"]], None]
"""Called with each early call's tool, and whether its answer was used."""


class EarlyCall:
    """The early call of one completion: at most one at a time, for there is at most one open call.

    Once a call's closing parenthesis is written, only ``->`` is missing. A pure tool may then be called at the risk of
    an answer that nobody wants, beside the steps that it takes to write the arrow.
    """

    def __init__(self, saw: SawEarly) -> None:
        self._saw = saw
        self._call: ApiCall | None = None
        self._task: asyncio.Task[ToolResult] | None = None

    def begin(self, call: ApiCall, answering: Coroutine[None, None, ToolResult]) -> None:
        """Start ``call``; an earlier one that was not taken is dropped."""
        self.drop()
        self._call, self._task = call, asyncio.create_task(answering, name="early tool call")

    def take(self, call: ApiCall) -> asyncio.Task[ToolResult] | None:
        """The running or finished call, if it is this one."""
        if call != self._call:
            self.drop()
            return None
        task, self._call, self._task = self._task, None, None
        self._saw(call.tool, "used")
        return task

    def drop(self) -> None:
        """Nobody wants the answer any more."""
        if self._call is not None and self._task is not None:
            self._task.cancel()
            self._saw(self._call.tool, "wasted")
        self._call = self._task = None
