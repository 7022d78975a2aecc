"""The tool over MCP, asked by the official client through the real app."""

import contextlib
import logging
from collections.abc import AsyncIterator

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from services.base import ServiceInfo, create_app
from tests.services.fake_tool import FORGETFUL, INFO, UpperEngine
from tests.toolformer.http_api.asgi import error_of, running


@contextlib.asynccontextmanager
async def session(
    info: ServiceInfo = INFO, engine: UpperEngine | None = None, mode: str = "auto"
) -> AsyncIterator[Client]:
    app = create_app(info, engine or UpperEngine())
    async with (
        running(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://upper:8100") as http,
        Client(streamable_http_client("http://upper:8100/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_one_tool_is_listed_and_called(mode: str) -> None:
    async with session(mode=mode) as client:
        [tool] = (await client.list_tools()).tools
        assert tool.name == "Upper"
        assert tool.description == INFO.description
        assert tool.input_schema["required"] == ["input"]
        assert tool.input_schema["properties"]["input"]["description"] == "Any text."
        assert "date" in tool.input_schema["properties"]

        result = await client.call_tool("Upper", {"input": "שלום abc 👋"})
        assert not result.is_error
        assert text_of(result) == "שלום ABC 👋"
        assert text_of(await client.call_tool("Upper", {"input": "day", "date": "2024-02-29"})) == "2024-02-29"


async def test_a_tool_without_context_offers_no_date() -> None:
    async with session(FORGETFUL) as client:
        [tool] = (await client.list_tools()).tools
        assert list(tool.input_schema["properties"]) == ["input"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("Upper", {"input": "fail"}, "no_answer: there is none"),
        ("Upper", {"input": "x" * 1_001}, "input_too_long: the input has 1,001 characters"),
        ("Upper", {"input": "broken"}, "internal: the tool failed unexpectedly"),
        ("Upper", {"input": "not ready"}, "the index is being rebuilt"),
        ("Upper", {}, "'input': Field required"),
        ("Upper", {"input": 5}, "'input': Input should be a valid string"),
        ("Upper", {"input": "a", "date": "soon"}, "'date': Value error, must be a day of the calendar as YYYY-MM-DD"),
        ("Upper", {"input": "a", "more": 1}, "'more': Extra inputs are not permitted"),
        ("Lower", {"input": "a"}, "there is no tool 'Lower' here; the one tool is 'Upper'"),
    ],
)
async def test_what_the_tool_cannot_answer_is_an_error_the_model_may_read(
    name: str, arguments: dict[str, object], message: str
) -> None:
    async with session() as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert message in text_of(result)


async def test_a_loading_engine_is_reported() -> None:
    engine = UpperEngine()
    engine.may_start.clear()
    async with session(engine=engine) as client:
        result = await client.call_tool("Upper", {"input": "a"})
        assert result.is_error
        assert "still loading" in text_of(result)


async def test_the_body_limit_holds_for_mcp_too(caplog: pytest.LogCaptureFixture) -> None:
    async def streamed() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 10_000

    async with running(create_app(INFO, UpperEngine())) as client:
        for content in (b"x" * 200_000, streamed()):
            headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
            response: httpx.Response = await client.post("/mcp", content=content, headers=headers)
            assert response.status_code == 413
            assert error_of(response)["code"] == "body_too_large"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
