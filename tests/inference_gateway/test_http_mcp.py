"""All tools at the gateway's MCP endpoint, by the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.inference_gateway.http_harness import Gateway, bearer, gateway
from tests.toolformer.outside_servers import registry
from tests.toolformer.tool_service import capitals, serve
from toolformer.result_cache import MemoryCache
from toolformer.tools import ToolRegistry


@asynccontextmanager
async def session(at: Gateway, key: str = "", mode: str = "auto") -> AsyncIterator[Client]:
    headers = bearer(key) if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(f"{at.url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


async def error_text(client: Client, tool: str, input: str) -> str:
    """What the model that calls ``tool`` reads, which is an error."""
    result = await client.call_tool(tool, {"input": input})
    assert result.is_error
    return text_of(result)


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_every_tool_is_listed_and_called(tooled: Gateway, mode: str) -> None:
    async with session(tooled, mode=mode) as client:
        assert "the middle of its text" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        packaged = ToolRegistry.load(files=[], environ={})
        assert list(tools) == list(packaged.names())
        assert {tool.name: tool.description for tool in packaged} == {n: t.description for n, t in tools.items()}
        assert tools["Calculator"].input_schema["required"] == ["input"]
        assert "date" not in tools["Calculator"].input_schema["properties"]
        assert "required" not in tools["Calendar"].input_schema
        assert "date" in tools["Calendar"].input_schema["properties"]
        for tool in tools.values():
            assert tool.annotations is not None
            assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (True, False)
            assert tool.output_schema is not None

        result = await client.call_tool("Calculator", {"input": "24 * 17"})
        assert (text_of(result), result.structured_content) == ("408", {"output": "408"})
        result = await client.call_tool("Calendar", {"date": "2026-11-20"})
        assert text_of(result) == "Today is Friday, November 20, 2026."


@pytest.mark.asyncio(loop_scope="module")
async def test_what_has_no_answer_is_an_error_that_the_model_may_read(tooled: Gateway) -> None:
    async with session(tooled) as client:
        assert (await error_text(client, "Calculator", "1 / 0")).startswith("division_by_zero: ")
        assert (await error_text(client, "Calculator", "1" * 5_000)).startswith("input_too_long: the input has 5,000 ")
        down = await error_text(client, "WikiSearch", "Oslo")
        assert down.startswith(("unreachable: ", "circuit_open: "))
        assert "127.0.0.1" not in down
        missing = await client.call_tool("Abacus", {"input": "1"})
        assert "there is no tool 'Abacus' here; the tools are: Calculator, " in text_of(missing)
    assert await tooled.metric('toolformer_tool_calls_total{outcome="division_by_zero",tool="Calculator"}') == 1


async def test_keys_and_their_shares() -> None:
    async with (
        serve(capitals("Calculator")) as service,
        gateway({"Calculator": service.url}, key="k-1", api_keys="a:k-1,b:k-2", key_requests_per_minute=1) as at,
    ):
        refused = await at.http.post("/mcp", json={}, headers=bearer("k-3"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
        async with session(at, "k-1") as one, session(at, "k-2") as other:
            assert text_of(await one.call_tool("Calculator", {"input": "a"})) == "A"
            assert (await error_text(one, "Calculator", "a")).startswith("rate_limit_exceeded: ")
            assert text_of(await other.call_tool("Calculator", {"input": "a"})) == "A"


async def test_calls_are_kept_labelled_and_counted() -> None:
    async with (
        serve(capitals("Calculator", version="1")) as service,
        gateway({"Calculator": service.url}, cache=MemoryCache()) as at,
        session(at) as client,
    ):
        for _ in range(2):
            assert text_of(await client.call_tool("Calculator", {"input": "a"})) == "A"
        assert await at.metric('toolformer_tool_cache_lookups_total{outcome="hit",tool="Calculator"}') == 1
        assert await at.metric('toolformer_tool_calls_total{outcome="ok",tool="Calculator"}') == 2
    [call] = [seen for seen in service.seen if seen.method == "POST"]
    assert call.headers["x-request-id"]


async def test_a_tool_that_does_something_is_not_marked_as_read_only() -> None:
    tools = registry("http://127.0.0.1:9", pure=False, http={"query": {"q": "{input}"}})
    async with gateway(registry=tools) as at, session(at) as client:
        [tool] = (await client.list_tools()).tools
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) == (False, True)
