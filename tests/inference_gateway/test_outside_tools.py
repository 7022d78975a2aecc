"""Tools from outside called from text, through the whole gateway: an HTTP API and an MCP server, killed and back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from tests.inference_gateway.http_harness import Gateway, gateway
from tests.support.redis_server import free_port
from tests.toolformer.outside_servers import mcp_server, registry
from tests.toolformer.tool_service import Seen, response, sends, serve, silent

HTTP = {"http": {"path": "/sum", "query": {"q": "{input}"}, "answer": "result"}}
MCP = {"mcp": {"tool": "work_out", "arguments": {"sum": "{input}"}, "answer": "all.0.value"}}


@asynccontextmanager
async def api(port: int) -> AsyncIterator[str]:
    async with serve(sends(response(200, b'{"result": 408}')), port) as service:
        yield service.url


async def is_ready(at: Gateway) -> bool:
    ready: bool = (await at.http.get("/ready")).json()["tools"]["Calculator"]["ready"]
    return ready


async def texts_of(at: Gateway) -> list[str]:
    """What 20 streams at once give."""
    streams = await asyncio.gather(*(at.stream("Sum:") for _ in range(20)))
    return [stream.text() for stream in streams]


@pytest.mark.parametrize(("table", "serving", "path"), [(HTTP, api, ""), (MCP, mcp_server, "/mcp")])
async def test_called_from_text_while_the_tool_is_killed_and_back(
    table: dict[str, Any], serving: Any, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("inference_gateway.http.operations.PROBE_CHECK_SECONDS", 30.0)
    port = free_port()
    tools = registry(f"http://127.0.0.1:{port}{path}", **table)

    def up() -> AbstractAsyncContextManager[str]:
        context: AbstractAsyncContextManager[str] = serving(port)
        return context

    async with gateway(registry=tools) as at:
        async with up():
            assert await is_ready(at)
            assert await texts_of(at) == [" It is [Calculator(24 * 17) -> 408] 408 books."] * 20
        assert not any("408" in text for text in await texts_of(at))
        assert not await is_ready(at)
        async with up():
            await asyncio.sleep(1.1)
            assert "408 books" in (await at.stream("Sum:")).text()
        assert await at.metric('toolformer_tool_calls_total{outcome="ok",tool="Calculator"}') == 21


async def test_an_api_is_killed_while_20_streams_wait_for_its_answer() -> None:
    port, arrived = free_port(), asyncio.Semaphore(0)

    async def counts(seen: Seen, writer: asyncio.StreamWriter) -> None:
        arrived.release()
        await silent(seen, writer)

    async with gateway(registry=registry(f"http://127.0.0.1:{port}", **HTTP)) as at:
        async with serve(counts, port):
            waiting = asyncio.create_task(texts_of(at))
            async with asyncio.timeout(60):
                for _ in range(20):
                    await arrived.acquire()
        assert await waiting == [" It is unknown."] * 20
        async with api(port):
            await asyncio.sleep(1.1)
            assert "408 books" in (await at.stream("Sum:")).text()
            assert await texts_of(at) == [" It is [Calculator(24 * 17) -> 408] 408 books."] * 20
