"""Calculator and calendar that fail as the request says whose call they answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

from benchmarks.serving.tool import answer
from tests.toolformer import tool_service

_SLOW_SECONDS: Final = 0.1
_LARGE_BYTES: Final = 300_000


def request_id(number: int, fault: str) -> str:
    """The id of a request, which reaches the tools and tells them what to do."""
    return f"soak-{number}-{fault}"


def _answer(tool: str, call: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    if tool == "Calendar":
        return tool_service.answer(tool, call) | {"output": "Today is Saturday, November 21, 2026."} | changes
    return answer(call) | changes


@contextlib.asynccontextmanager
async def failing(tool: str) -> AsyncIterator[str]:
    """The address of the service of ``tool``."""

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
        await tool_service.answers(lambda call: _answer(tool, call, made))(seen, writer)
        service.seen.clear()  # it would grow with every call

    async with tool_service.serve(behave) as service:
        yield service.url
