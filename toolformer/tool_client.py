"""Calling tools over HTTP: a typed result whatever happens.

Speaks the tool services' contract: ``POST /call`` for one call, ``POST /calls`` for several, ``GET /ready``. An answer
is data to be checked: its size is limited while it arrives, its shape and the tool and input it names must be the ones
asked for. Redirects are not followed and proxies are not looked for: a call goes to the registry's address or nowhere.
`tool_wire` is the contract as JSON, `tool_exchange` the sending with deadline, retries and circuit breaker.
"""

# ruff: noqa: ASYNC109 - how long a call may take is its caller's to say

from __future__ import annotations

import asyncio
import datetime as dt
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from toolformer.circuit_breaker import State
from toolformer.tool_exchange import PROPAGATED_HEADERS, Exchange, RetryPolicy
from toolformer.tool_wire import (
    ErrorCode,
    Failed,
    Request,
    ToolError,
    call_body,
    calls_body,
    read_answer,
    read_answers,
    refusal,
)
from toolformer.tools import Tool, ToolRegistry, UnknownTool

__all__ = ["PROPAGATED_HEADERS", "ErrorCode", "Readiness", "RetryPolicy", "ToolClient", "ToolError", "ToolResult"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call: ``output``, or ``error`` where there is none.

    ``attempts`` counts the requests sent, 0 if none was; ``duration_ms`` is what the caller waited in milliseconds, in
    a batch for the request that held the call; ``cached`` says that the output is of an earlier, identical call.
    """

    tool: str
    input: str
    output: str | None
    error: ToolError | None
    duration_ms: float
    attempts: int
    cached: bool = False

    def __post_init__(self) -> None:
        if (self.output is None) == (self.error is None):
            raise ValueError("a tool result has either an output or an error")

    @property
    def ok(self) -> bool:
        """Whether the tool had an answer."""
        return self.error is None


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a service can answer calls, true or false as a condition; ``reason`` says why not and is else empty."""

    ok: bool
    reason: str = ""

    def __bool__(self) -> bool:
        return self.ok


class ToolClient:
    """Calls the tools of ``registry``; an async context manager, held while tools are called, on one event loop.

    Args:
        registry: the tools and their addresses.
        policy: retries and circuits.
        max_response_bytes: bytes of a service's answer to one call; a batch may have as many times that.
        cache_size: outputs kept of calls whose answer cannot change (`Tool.cacheable`); 0 keeps none.
        clock: seconds on a clock that never goes back, for circuits and durations.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        policy: RetryPolicy | None = None,
        *,
        max_response_bytes: int = 256 * 1024,
        cache_size: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._exchange = Exchange(registry.names(), policy or RetryPolicy(), clock)
        self._max_response_bytes = max_response_bytes
        self._cache = _Cache(cache_size)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await self._exchange.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exchange.__aexit__()

    async def call(
        self,
        name: str,
        input: str,
        *,
        date: dt.date | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """Call the tool ``name``. Trouble with the tool never raises: it is the result's ``error``.

        Args:
            name: the tool's name in text.
            input: what stands between the call's parentheses, unquoted.
            date: the date of the text, for tools that take one.
            timeout: seconds for everything, retries and waits included; by default the tool's own.
            headers: of these, `PROPAGATED_HEADERS` are passed on.

        Raises:
            ValueError: if ``timeout`` is not a finite number.
        """
        _check_timeout(timeout)
        [result] = await self._results(name, [Request(input, date)], batched=False, timeout=timeout, headers=headers)
        return result

    async def call_many(
        self,
        name: str,
        inputs: Sequence[str],
        *,
        dates: dt.date | Sequence[dt.date | None] | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
        concurrency: int = 4,
    ) -> list[ToolResult]:
        """Call the tool once for each input and give the results in the same order; never raises for tool trouble.

        Args:
            name: the tool's name in text.
            inputs: the calls' inputs, sent in batches of the tool's ``max_batch``.
            dates: one date for all calls, or one for each.
            timeout: seconds for a batch; by default the tool's own time for one call, times the calls in the batch.
            headers: of these, `PROPAGATED_HEADERS` are passed on.
            concurrency: batches under way at once.

        Raises:
            ValueError: if ``dates`` has another length than ``inputs``, or ``timeout`` or ``concurrency`` is senseless.
        """
        _check_timeout(timeout)
        if concurrency < 1:
            raise ValueError(f"concurrency must be at least 1, not {concurrency}")
        each = [dates] * len(inputs) if dates is None or isinstance(dates, dt.date) else dates
        if len(each) != len(inputs):
            raise ValueError(f"dates must be one date, or one for each of the {len(inputs)} inputs, not {len(each)}")
        requests = [Request(input, date) for input, date in zip(inputs, each, strict=True)]
        batch = self._registry.get(name).max_batch if name in self._registry else max(len(requests), 1)
        slots = asyncio.Semaphore(concurrency)

        async def answered(some: Sequence[Request]) -> list[ToolResult]:
            async with slots:
                return await self._results(name, some, batched=True, timeout=timeout, headers=headers)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answered(requests[at : at + batch])) for at in range(0, len(requests), batch)]
        return [result for task in tasks for result in task.result()]

    async def ready(self, name: str, *, timeout: float = 2.0) -> Readiness:
        """Ask the tool's service, within ``timeout`` seconds, whether it can answer calls.

        Raises:
            ValueError: if ``timeout`` is not a finite number.
        """
        _check_timeout(timeout)
        try:
            error = await self._exchange.get_ready(self._registry.get(name), timeout)
        except UnknownTool as unknown:
            return Readiness(False, str(unknown))
        return Readiness(error is None, error.message if error else "")

    def circuit(self, name: str) -> State:
        """The state of the circuit to the tool ``name``.

        Raises:
            UnknownTool: if there is no such tool.
        """
        return self._exchange.circuit(self._registry.get(name).name)

    async def _results(
        self,
        name: str,
        requests: Sequence[Request],
        *,
        batched: bool,
        timeout: float | None,
        headers: Mapping[str, str] | None,
    ) -> list[ToolResult]:
        """Results in the order of ``requests``; those that need the service are asked for in one request to it."""
        started = self._clock()

        def result(request: Request, answer: str | ToolError, attempts: int, *, cached: bool = False) -> ToolResult:
            output, error = (answer, None) if isinstance(answer, str) else (None, answer)
            waited_ms = (self._clock() - started) * 1000
            return ToolResult(name, request.input, output, error, waited_ms, attempts, cached)

        try:
            tool = self._registry.get(name)
        except UnknownTool as unknown:
            return [result(r, ToolError(ErrorCode.UNKNOWN_TOOL, str(unknown)), 0) for r in requests]

        results: dict[int, ToolResult] = {}
        for at, request in enumerate(requests):
            if (refused := refusal(request)) is not None:
                results[at] = result(request, refused, 0)
            elif (kept := self._cache.get(tool, request)) is not None:
                results[at] = result(request, kept, 0, cached=True)
        asked = {at: request for at, request in enumerate(requests) if at not in results}
        if asked:
            answers, attempts = await self._ask(tool, list(asked.values()), batched, timeout, headers)
            for (at, request), answer in zip(asked.items(), answers, strict=True):
                results[at] = result(request, answer, attempts)
                if isinstance(answer, str):
                    self._cache.put(tool, request, answer)
        return [results[at] for at in range(len(requests))]

    async def _ask(
        self,
        tool: Tool,
        requests: Sequence[Request],
        batched: bool,
        timeout: float | None,
        headers: Mapping[str, str] | None,
    ) -> tuple[Sequence[str | ToolError], int]:
        """The service's answers to ``requests``, in order, and the number of attempts it took."""
        patience = tool.timeout_s * len(requests)
        reply = await self._exchange.post(
            tool,
            "/calls" if batched else "/call",
            calls_body(tool, requests) if batched else call_body(tool, requests[0]),
            headers=headers or {},
            timeout=patience if timeout is None else timeout,
            patience=patience,
            max_bytes=self._max_response_bytes * len(requests),
        )
        if reply.error is not None:
            return [reply.error] * len(requests), reply.attempts
        try:
            read = read_answers(tool, requests, reply.body) if batched else [read_answer(tool, requests[0], reply.body)]
        except Failed as failed:
            return [failed.error] * len(requests), reply.attempts
        return read, reply.attempts


class _Cache:
    """The outputs of the latest calls whose answer cannot change; the one used longest ago goes first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._outputs: OrderedDict[tuple[str, str, str, dt.date | None], str] = OrderedDict()

    def get(self, tool: Tool, request: Request) -> str | None:
        key = _key(tool, request)
        output = self._outputs.get(key)
        if output is not None:
            self._outputs.move_to_end(key)
        return output

    def put(self, tool: Tool, request: Request, output: str) -> None:
        if self._size and tool.cacheable(request.date):
            self._outputs[_key(tool, request)] = output
            self._outputs.move_to_end(_key(tool, request))
            if len(self._outputs) > self._size:
                self._outputs.popitem(last=False)


def _check_timeout(timeout: float | None) -> None:
    # A deadline that never comes, or one that compares with nothing, would be no deadline.
    if timeout is not None and not math.isfinite(timeout):
        raise ValueError(f"timeout must be a finite number of seconds, not {timeout}")


def _key(tool: Tool, request: Request) -> tuple[str, str, str, dt.date | None]:
    return tool.name, tool.version, request.input, request.date if tool.takes_date else None
