"""A calculator service in this process that takes as long as it is told to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from benchmarks.serving.ways import TOOL
from services.calculator.engine import calculate
from tests.toolformer import tool_service


def answer(call: dict[str, Any]) -> dict[str, Any]:
    """The right answer."""
    return tool_service.answer(TOOL, call, output=calculate(call["input"]))


@contextlib.asynccontextmanager
async def calculator(seconds: float) -> AsyncIterator[str]:
    """The address of a calculator that answers each call after so many seconds."""
    at_once = tool_service.answers(answer)

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        if seen.method == "POST" and seconds:
            await asyncio.sleep(seconds)
        await at_once(seen, writer)

    async with tool_service.serve(behave) as service:
        yield service.url
