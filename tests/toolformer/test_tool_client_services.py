"""The client against the project's own services: both sides of the contract, over a socket."""

from __future__ import annotations

import asyncio
import datetime as dt
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from fastapi import FastAPI

from services.calculator.app import INFO as CALCULATOR
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from toolformer.result_cache import CallKey, MemoryCache
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[str]:
    """Serve ``app`` with uvicorn; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:  # connections queue from here on
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=5))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def client_of(name: str, app: FastAPI) -> AsyncIterator[ToolClient]:
    """A client whose tool ``name`` is at ``app``, once that is ready."""
    async with running(app) as url:
        registry = ToolRegistry.load(files=[], environ={f"TOOLFORMER_TOOL_{name.upper()}_URL": url})
        async with ToolClient(registry) as client:
            async with asyncio.timeout(30):
                while not await client.ready(name):  # noqa: ASYNC110 - a service is ready when it says so if asked
                    await asyncio.sleep(0.01)
            yield client


async def test_both_sides_mean_the_same_header_by_a_version() -> None:
    async with running(calculator()) as url:
        registry = ToolRegistry.load(files=[], environ={"TOOLFORMER_TOOL_CALCULATOR_URL": url})
        cache = MemoryCache()
        async with ToolClient(registry, cache=cache) as client:
            await client.call("Calculator", "1 + 1")
            key = CallKey("Calculator", registry.get("Calculator").version, CALCULATOR.version, "1 + 1", None)
            assert await cache.get([key]) == ["2"]


async def test_the_calculator() -> None:
    async with client_of("Calculator", calculator()) as client:
        right = await client.call("Calculator", "27 + 4 * 2", headers={"x-request-id": "r-1"})
        wrong = await client.call("Calculator", "1 / 0")
        many = await client.call_many("Calculator", ["400 / 1400", "", *["10-2-3"] * 100])
    assert (right.output, right.error, right.attempts) == ("35", None, 1)
    assert wrong.error is not None
    assert wrong.error.code == "division_by_zero"
    assert many[0].output == "0.29"
    assert not many[1].ok
    assert [result.output for result in many[2:]] == ["5"] * 100


async def test_the_calendar() -> None:
    days = [dt.date(2026, 11, 20), dt.date(2023, 1, 30)]
    async with client_of("Calendar", calendar()) as client:
        dated = await client.call_many("Calendar", ["", ""], dates=days)
        today = await client.call("Calendar", "")
    assert [result.output for result in dated] == [
        "Today is Friday, November 20, 2026.",
        "Today is Monday, January 30, 2023.",
    ]
    assert today.ok


@pytest.mark.parametrize("characters", [CALCULATOR.max_input_chars + 1, CALCULATOR.max_body_bytes])
async def test_an_input_that_is_too_long_has_a_named_error(characters: int) -> None:
    async with client_of("Calculator", calculator()) as client:
        result = await client.call("Calculator", "1" * characters)
    assert result.error is not None
    assert result.error.code in {"input_too_long", "body_too_large"}
