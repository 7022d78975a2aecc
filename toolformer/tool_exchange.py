"""One request to a tool's service: within one deadline, sent again where that is harmless, past a circuit breaker."""

# ruff: noqa: ASYNC109 - here is where a timeout becomes a deadline

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Self

import httpx

from toolformer.circuit_breaker import Attempt, CircuitBreaker, State
from toolformer.tool_wire import ErrorCode, Failed, Request, ToolError
from toolformer.tools import Tool
from toolformer.wires import HttpWire, ServiceWire, Wire


@dataclass(frozen=True, slots=True)
class Reply:
    """What a request ended in after ``attempts``: ``outcomes`` and ``version``, or ``error`` where there are none."""

    attempts: int
    outcomes: Sequence[str | ToolError] = ()
    version: str = ""
    error: ToolError | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and when a request is sent again. Only pure tools are asked twice.

    ``max_attempts`` counts the first. ``backoff_s`` is about the wait before the second in seconds; each further one
    waits twice as long. ``failure_threshold`` and ``cool_down_s`` are the `CircuitBreaker`'s.

    Raises:
        ValueError: if ``max_attempts`` or ``backoff_s`` is out of range.
    """

    max_attempts: int = 3
    backoff_s: float = 0.05
    failure_threshold: int = 5
    cool_down_s: float = 1.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError(f"max_attempts must be at least 1, not {self.max_attempts}")
        if not self.backoff_s >= 0:
            raise ValueError(f"backoff_s must be 0 or more seconds, not {self.backoff_s}")

    def pause_s(self, attempts: int, retry_after_s: float) -> float:
        """Seconds to wait after ``attempts``. Half is chance: callers who failed together do not come back together."""
        backoff = self.backoff_s * 2.0 ** (attempts - 1) * (0.5 + random.random() / 2)
        return max(backoff, retry_after_s)


class Exchange:
    """The connections and circuits to the services of some tools; an async context manager for one event loop."""

    def __init__(self, tools: Iterable[Tool], policy: RetryPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._tools = tuple(tools)
        self._wires: dict[str, Wire] = {}
        self._connections = AsyncExitStack()
        self._circuits = {
            tool.name: CircuitBreaker(
                failure_threshold=policy.failure_threshold, cool_down_s=policy.cool_down_s, clock=clock
            )
            for tool in self._tools
        }

    async def __aenter__(self) -> Self:
        http = httpx.AsyncClient(
            headers={"Accept-Encoding": "identity"},  # a compressed answer could unfold past the size limit
            follow_redirects=False,
            trust_env=False,
            cookies=_no_cookies(),
            timeout=None,  # every exchange has one deadline over all it does
            # Connections in use are not limited, lest a slow tool starve the others: callers bound their own calls.
            # Idle ones are dropped before servers commonly do, so that none is used just as it is being closed.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=2.0),
        )
        await self._connections.enter_async_context(http)
        for tool in self._tools:
            if tool.http is not None:
                self._wires[tool.name] = HttpWire(tool, tool.http, http)
            elif tool.mcp is None:
                self._wires[tool.name] = ServiceWire(tool, http)
        if any(tool.mcp for tool in self._tools):
            from toolformer.mcp_wire import mcp_wires  # nobody else waits until the SDK is loaded

            self._wires |= await mcp_wires(self._tools, self._connections)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wires = {}
        await self._connections.aclose()

    def circuit(self, name: str) -> State:
        """The state of the circuit to the tool ``name``."""
        return self._circuits[name].state

    async def ask(
        self,
        tool: Tool,
        requests: Sequence[Request],
        *,
        batched: bool,
        headers: Mapping[str, str],
        timeout: float,
        patience: float,
        max_bytes: int,
        spent: float = 0.0,
    ) -> Reply:
        """Send ``requests`` to the tool. Raises nothing for trouble with it.

        Args:
            tool: the tool.
            requests: calls of it.
            batched: whether they are sent as a batch.
            headers: the caller's; `PROPAGATED_HEADERS` are passed on.
            timeout: seconds for everything, retries and waits included.
            patience: seconds the service may fairly take; only a wait of that long speaks against it.
            max_bytes: bytes of the answer.
            spent: of the ``timeout``, the seconds that are gone already.
        """
        circuit = self._circuits[tool.name]
        attempt: Attempt | None = None
        error: ToolError | None = None
        attempts = 0
        try:
            async with asyncio.timeout(timeout - spent) as deadline:
                while True:
                    attempt = circuit.admit()
                    if attempt is None:
                        return Reply(attempts, error=error or _circuit_open(tool))
                    attempts += 1
                    retry_after_s = 0.0
                    try:
                        answered = await self._wire(tool).ask(
                            requests, batched=batched, max_bytes=max_bytes, headers=headers
                        )
                        attempt.succeeded()
                        return Reply(attempts, answered.outcomes, answered.version)
                    except httpx.RequestError as broken:
                        attempt.failed()
                        error = _unreachable(tool, broken)
                    except Failed as failed:
                        attempt.succeeded()  # it is there, whatever it said
                        error, retry_after_s = failed.error, failed.retry_after_s
                        if not failed.retryable:
                            return Reply(attempts, error=error)
                    pause_s = self._policy.pause_s(attempts, retry_after_s)
                    last = attempts >= self._policy.max_attempts or not tool.pure
                    if last or _passes(deadline, pause_s):
                        return Reply(attempts, error=error)
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            # An impatient caller must not close a service to the others.
            if attempt is not None and timeout >= patience:
                attempt.failed()
            message = f"{tool.name} did not answer within {timeout:g} s"
            return Reply(attempts, error=ToolError(ErrorCode.TIMEOUT, message))
        finally:
            if attempt is not None:
                attempt.abandoned()  # counts only where nothing else was said: the caller gave up

    async def get_ready(self, tool: Tool, timeout: float) -> Reply:
        """Ask within ``timeout`` seconds, once, whether the tool is ready; the error says why not. No circuit is
        changed."""
        try:
            async with asyncio.timeout(timeout):
                version = await self._wire(tool).ready()
        except TimeoutError:
            message = f"{tool.name} did not answer within {timeout:g} s at {tool.address}"
            return Reply(1, error=ToolError(ErrorCode.TIMEOUT, message))
        except httpx.RequestError as broken:
            return Reply(1, error=_unreachable(tool, broken))
        except Failed as failed:
            return Reply(1, error=failed.error)
        return Reply(1, version=version)

    def _wire(self, tool: Tool) -> Wire:
        if not self._wires:
            raise RuntimeError("use the tool client inside 'async with ToolClient(...)'")
        return self._wires[tool.name]


def _no_cookies() -> CookieJar:
    """A jar that keeps none: what one tool sets would travel to every tool at the same host, with every user's call."""
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _passes(deadline: asyncio.Timeout, pause_s: float) -> bool:
    ends = deadline.when()
    return ends is not None and asyncio.get_running_loop().time() + pause_s >= ends


def _circuit_open(tool: Tool) -> ToolError:
    message = f"{tool.name} did not answer lately at {tool.address}; it is asked again shortly"
    return ToolError(ErrorCode.CIRCUIT_OPEN, message)


def _unreachable(tool: Tool, broken: httpx.RequestError) -> ToolError:
    reason = str(broken) or type(broken).__name__
    return ToolError(
        ErrorCode.UNREACHABLE, f"{tool.name} cannot be reached at {tool.address} ({reason}); is its service up?"
    )
