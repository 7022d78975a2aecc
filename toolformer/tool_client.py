"""Calling tools over HTTP: a typed result whatever happens.

Speaks the tool services' contract: ``POST /call`` for one call, ``POST /calls`` for several, ``GET /ready``; also any
HTTP API and MCP servers, one call a request. An answer is data to be checked: its size is limited while it arrives, and
a service's must name the tool and input that were asked for. Redirects are not followed and proxies are not looked for:
a call goes to the registry's address or nowhere. `tool_exchange` is the sending with deadline, retries and circuit
breaker, `wires` the ways to send (`tool_wire` is the contract as JSON), `kept_calls` what spares a call: results kept
(`result_cache`) and identical calls under way.
"""

# ruff: noqa: ASYNC109 - how long a call may take is its caller's to say

from __future__ import annotations

import asyncio
import datetime as dt
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from toolformer.circuit_breaker import State
from toolformer.kept_calls import Answer, KeptCalls, ignore_lookup
from toolformer.result_cache import Lookup, ResultCache
from toolformer.tool_exchange import Exchange, RetryPolicy
from toolformer.tool_versions import ToolVersions
from toolformer.tool_wire import (
    ErrorCode,
    Request,
    ToolError,
    refusal,
)
from toolformer.tools import Tool, ToolRegistry, UnknownTool
from toolformer.wires import PROPAGATED_HEADERS

__all__ = ["PROPAGATED_HEADERS", "ErrorCode", "Readiness", "RetryPolicy", "ToolClient", "ToolError", "ToolResult"]

VERSION_SECONDS: Final = 0.5
"""Deadline for asking a service its version: a service that takes longer is asked for the answer itself."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call: ``output``, or ``error`` where there is none.

    ``attempts`` counts the requests sent, 0 if none was; ``duration_ms`` is what the caller waited in milliseconds, in
    a batch for the request that held the call; ``cached`` says that the output is of another, identical call.
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
        cache: keeps the outputs of calls whose answer holds (`Tool.cacheable`), and is closed with the client; with
            one, identical calls at the same time are also made once.
        saw_lookup: called with each call that was looked for in the cache: the tool's name and what came of it.
        clock: seconds on a clock that never goes back, for circuits and durations.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        policy: RetryPolicy | None = None,
        *,
        max_response_bytes: int = 256 * 1024,
        cache: ResultCache | None = None,
        saw_lookup: Callable[[str, Lookup], None] = ignore_lookup,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = registry
        self._exchange = Exchange(registry, policy or RetryPolicy(), clock)
        self._max_response_bytes = max_response_bytes
        self._cache = cache
        self._kept = None if cache is None else KeptCalls(cache, ToolVersions(self._version, clock), saw_lookup)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await self._exchange.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exchange.__aexit__()
        if self._cache is not None:
            await self._cache.aclose()

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
            input: what is between the call's parentheses, unquoted.
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
            inputs: the calls' inputs, sent in batches of the tool's ``max_batch``; of 1, each to ``POST /call``.
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
        batch = self._registry.get(name).batch if name in self._registry else max(len(requests), 1)
        slots = asyncio.Semaphore(concurrency)

        async def answered(some: Sequence[Request]) -> list[ToolResult]:
            async with slots:
                return await self._results(name, some, batched=batch > 1, timeout=timeout, headers=headers)

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
            error = (await self._exchange.get_ready(self._registry.get(name), timeout)).error
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

        def result(request: Request, answer: Answer) -> ToolResult:
            output, error = (answer.outcome, None) if isinstance(answer.outcome, str) else (None, answer.outcome)
            waited_ms = (self._clock() - started) * 1000
            return ToolResult(name, request.input, output, error, waited_ms, answer.attempts, answer.cached)

        try:
            tool = self._registry.get(name)
        except UnknownTool as unknown:
            return [result(r, Answer(ToolError(ErrorCode.UNKNOWN_TOOL, str(unknown)), 0)) for r in requests]
        refused = [refusal(tool, request) for request in requests]
        sendable = [request for request, why in zip(requests, refused, strict=True) if why is None]
        began = asyncio.get_running_loop().time()

        async def ask(some: Sequence[Request]) -> tuple[Sequence[Answer], str]:
            spent = asyncio.get_running_loop().time() - began
            return await self._ask(tool, some, batched=batched, timeout=timeout, spent=spent, headers=headers or {})

        if self._kept is None:
            answers = (await ask(sendable))[0] if sendable else []
        else:
            patience = tool.timeout_s * len(sendable) if timeout is None else timeout
            answers = await self._kept.answers(tool, sendable, ask, patience)
        answered = iter(answers)
        return [
            result(request, next(answered) if why is None else Answer(why, 0))
            for request, why in zip(requests, refused, strict=True)
        ]

    async def _ask(
        self,
        tool: Tool,
        requests: Sequence[Request],
        *,
        batched: bool,
        timeout: float | None,
        spent: float,
        headers: Mapping[str, str],
    ) -> tuple[Sequence[Answer], str]:
        """The service's answers to ``requests``, in order, and the version that they hold for."""
        patience = tool.timeout_s * len(requests)
        reply = await self._exchange.ask(
            tool,
            requests,
            batched=batched,
            headers=headers,
            timeout=patience if timeout is None else timeout,
            patience=patience,
            max_bytes=self._max_response_bytes * len(requests),
            spent=spent,
        )
        outcomes = reply.outcomes if reply.error is None else [reply.error] * len(requests)
        return [Answer(outcome, reply.attempts) for outcome in outcomes], reply.version

    async def _version(self, tool: Tool) -> str | None:
        reply = await self._exchange.get_ready(tool, VERSION_SECONDS)
        return reply.version if reply.error is None else None


def _check_timeout(timeout: float | None) -> None:
    # A deadline that never comes, or one that compares with nothing, would be no deadline.
    if timeout is not None and not math.isfinite(timeout):
        raise ValueError(f"timeout must be a finite number of seconds, not {timeout}")
