"""Tools of MCP servers: a real server of the SDK, old and new ways to speak, slow, broken, killed and back."""

import asyncio
import time
from typing import Any

import pytest

from tests.support.redis_server import free_port
from tests.toolformer.outside_servers import mcp_server, registry
from tests.toolformer.tool_service import Behaviour, endless, response, sends, serve, silent, status
from toolformer.result_cache import MemoryCache
from toolformer.tool_client import RetryPolicy, ToolClient

QUICK = RetryPolicy(max_attempts=2, backoff_s=0.001, failure_threshold=2, cool_down_s=0.1)
SAY = {"tool": "say", "arguments": {"text": "{input}"}}


def client_of(url: str, mcp: dict[str, Any] = SAY, **options: Any) -> ToolClient:
    return ToolClient(registry(url, mcp=mcp), QUICK, **options)


@pytest.mark.parametrize("stateless", [False, True])
async def test_calls(stateless: bool) -> None:
    async with mcp_server(stateless=stateless) as url, client_of(url) as client:
        assert (await client.ready("Calculator", timeout=30)).ok
        results = await client.call_many("Calculator", ['l\'été "à"', "b", "c", "d", "e"], timeout=30)
        assert [result.output for result in results] == ['said l\'été "à"', "said b", "said c", "said d", "said e"]


@pytest.mark.parametrize(
    ("tool", "argument", "answer", "expected"),
    [
        ("work_out", "sum", "all.0.value", "408"),
        ("work_out", "sum", "all.1.value", "no_result"),
        ("say", "text", "result", "said 24 * 17"),
        ("fail", "text", "", "tool_error"),
        ("say", "wrong", "", "tool_error"),
        ("talk", "text", "", "too_large"),
    ],
)
async def test_what_comes_of_a_call(tool: str, argument: str, answer: str, expected: str) -> None:
    table = {"tool": tool, "arguments": {argument: "{input}"}, "answer": answer}
    async with mcp_server() as url, client_of(url, table) as client:
        result = await client.call("Calculator", "24 * 17", timeout=30)
    assert (result.output or (result.error and result.error.code)) == expected, result


async def test_a_tool_that_is_not_there_is_not_ready() -> None:
    async with mcp_server() as url, client_of(url, SAY | {"tool": "sing"}) as client:
        ready = await client.ready("Calculator", timeout=30)
        assert not ready
        assert "the server has no tool 'sing'; it has: work_out, say" in ready.reason
        assert not (await client.call("Calculator", "a", timeout=30)).ok


async def test_a_deadline_holds_and_the_next_call_is_answered() -> None:
    async with mcp_server() as url:
        slow = registry(url, mcp={"tool": "wait", "arguments": {"text": "{input}"}})
        async with ToolClient(slow, QUICK) as client:
            started = time.monotonic()
            result = await client.call("Calculator", "a", timeout=1.0)
            assert result.error is not None
            assert result.error.code == "timeout"
            assert time.monotonic() - started < 300
            assert (await client.ready("Calculator", timeout=30)).ok


@pytest.mark.parametrize(
    ("behave", "code"),
    [
        (status(500), "bad_response"),
        (status(401), "bad_response"),
        (status(404), "bad_response"),
        (status(503), "busy"),
        (status(307, {"Location": "/elsewhere"}), "bad_response"),
        (sends(response(200, b"{}")), "bad_response"),
        (sends(response(200, b"<html>", {"Content-Type": "text/html"})), "bad_response"),
        (sends(response(200, b"data: {", {"Content-Type": "text/event-stream"})), "unreachable"),
        (sends(b"nonsense\r\n\r\n"), "unreachable"),
        (endless, "too_large"),
        (silent, "timeout"),
    ],
)
async def test_a_broken_server_has_a_named_error(behave: Behaviour, code: str) -> None:
    async with serve(behave) as service, client_of(service.url) as client:
        result = await client.call("Calculator", "a", timeout=2.0 if behave is silent else 30.0)
        assert result.error is not None
        assert result.error.code == code, result
        assert not (await client.ready("Calculator", timeout=2.0 if behave is silent else 30.0)).ok


async def test_killed_and_back_and_the_cache_notices_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolformer.tool_versions.FRESH_S", 0.0)
    port = free_port()
    async with client_of(f"http://127.0.0.1:{port}/mcp", cache=MemoryCache()) as client:

        async def call() -> tuple[str | None, bool]:
            result = await client.call("Calculator", "a", timeout=30)
            return result.output, result.cached

        async with mcp_server(port):
            assert [await call() for _ in range(2)] == [("said a", False), ("said a", True)]
        [failed] = await client.call_many("Calculator", ["b"], timeout=30)
        assert failed.error is not None
        assert failed.error.code in {"unreachable", "circuit_open"}
        await asyncio.sleep(0.2)
        async with mcp_server(port, version="2.0"):
            assert [await call() for _ in range(2)] == [("said a", False), ("said a", True)]
