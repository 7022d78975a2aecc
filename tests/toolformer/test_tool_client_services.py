"""The client against the project's own services: both sides of the contract, over a socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI

from services.calculator.app import INFO as CALCULATOR
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import serving
from toolformer.result_cache import CallKey, MemoryCache
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry


@asynccontextmanager
async def client_of(name: str, app: FastAPI) -> AsyncIterator[ToolClient]:
    """A client whose tool ``name`` is at ``app``, once that is ready."""
    async with serving(app) as url:
        registry = ToolRegistry.load(files=[], environ={f"TOOLFORMER_TOOL_{name.upper()}_URL": url})
        async with ToolClient(registry) as client:
            async with asyncio.timeout(60):
                while not await client.ready(name):  # noqa: ASYNC110 - a service is ready when it says so if asked
                    await asyncio.sleep(0.01)
            yield client


async def test_both_sides_mean_the_same_header_by_a_version() -> None:
    async with serving(calculator()) as url:
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


@pytest.mark.parametrize("characters", [CALCULATOR.max_input_chars + 1, CALCULATOR.max_body_bytes])
async def test_an_input_that_is_too_long_has_a_named_error(characters: int) -> None:
    async with client_of("Calculator", calculator()) as client:
        result = await client.call("Calculator", "1" * characters)
    assert result.error is not None
    assert result.error.code in {"input_too_long", "body_too_large"}
