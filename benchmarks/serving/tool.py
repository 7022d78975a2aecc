"""A calculator service in this process that takes as long as it is told to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from benchmarks.serving.ways import TOOL
from services.calculator.engine import CalculatorError, calculate
from tests.toolformer import tool_service

_UNREADABLE = "0"
"""The answer to what is no expression: behind a long context the small model writes such calls now and then, and what
is measured is the time of a call, not its arithmetic."""


def answer(call: dict[str, Any]) -> dict[str, Any]:
    """The right answer, where there is one."""
    try:
        output = calculate(call["input"])
    except CalculatorError:
        output = _UNREADABLE
    return tool_service.answer(TOOL, call, output=output)


@dataclass(slots=True)
class Calculator:
    """A running calculator service: its address, and the ``seconds`` that it takes for a call from now on."""

    url: str = ""
    seconds: float = 0.0


@contextlib.asynccontextmanager
async def calculator(seconds: float = 0.0) -> AsyncIterator[Calculator]:
    """A calculator that answers each call after so many seconds."""
    running, at_once = Calculator(seconds=seconds), tool_service.answers(answer)

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        if seen.method == "POST" and running.seconds:
            await asyncio.sleep(running.seconds)
        await at_once(seen, writer)

    async with tool_service.serve(behave) as service:
        running.url = service.url
        yield running
