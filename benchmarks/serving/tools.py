"""Tool services in this process: a calculator that takes as long as is asked for, and tools that fail on request."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.serving.ways import TOOL
from services.calculator.engine import CalculatorError, calculate
from tests.toolformer import tool_service

_UNREADABLE: Final = "0"
"""The answer to what is no expression, which the small model writes now and then: what is measured is the time of a
call, not its arithmetic."""

_SLOW_SECONDS: Final = 0.1
_LARGE_BYTES: Final = 300_000


@dataclass(slots=True)
class Calculator:
    """A running calculator service: its address, and the ``seconds`` that it takes for a call from now on."""

    url: str = ""
    seconds: float = 0.0


@contextlib.asynccontextmanager
async def calculator(seconds: float = 0.0) -> AsyncIterator[Calculator]:
    """A calculator that answers each call after so many seconds."""
    running, at_once = Calculator(seconds=seconds), tool_service.answers(lambda call: _answer(TOOL, call))

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        if seen.method == "POST" and running.seconds:
            await asyncio.sleep(running.seconds)
        await at_once(seen, writer)

    async with tool_service.serve(behave) as service:
        running.url = service.url
        yield running


def request_id(number: int, fault: str) -> str:
    """The id of a request, which reaches the `failing` tools and names the fault."""
    return f"soak-{number}-{fault}"


@contextlib.asynccontextmanager
async def failing(tool: str) -> AsyncIterator[str]:
    """The address of a service of ``tool``, a calculator or calendar, that fails as the request's id says whose call it
    answers."""

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        fault = seen.headers.get("x-request-id", "").rpartition("-")[2]
        made: dict[str, Any] = {}
        match fault if seen.method == "POST" else "":
            case "slow":
                await asyncio.sleep(_SLOW_SECONDS)
            case "error":
                made = {"output": None, "error": {"code": "no_answer", "message": "nothing comes to mind"}}
            case "status":
                await tool_service.status(500, body=b'{"error": {"message": "broken", "code": "broken"}}')(seen, writer)
                return
            case "garbage":
                await tool_service.status(200, body=b'{"tool": "Calcu')(seen, writer)
                return
            case "wrong_tool":
                made = {"tool": "Somebody"}
            case "large":
                made = {"output": "9" * _LARGE_BYTES}
            case "hang":
                await tool_service.silent(seen, writer)
            case "hang_up":
                await tool_service.hang_up(seen, writer)
            case _:
                pass
        await tool_service.answers(lambda call: _answer(tool, call) | made)(seen, writer)
        service.seen.clear()  # it would grow with every call

    async with tool_service.serve(behave) as service:
        yield service.url


def _answer(tool: str, call: dict[str, Any]) -> dict[str, Any]:
    """The right answer, where there is one."""
    if tool == "Calendar":
        return tool_service.answer(tool, call, output="Today is Saturday, November 21, 2026.")
    try:
        output = calculate(call["input"])
    except CalculatorError:
        output = _UNREADABLE
    return tool_service.answer(tool, call, output=output)
