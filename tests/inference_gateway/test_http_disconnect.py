"""A client that leaves frees what it held, wherever its completion stands, and the others notice nothing."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import pytest
from starlette.types import Message

from inference_gateway.http import event_stream
from tests.inference_gateway.http_harness import Gateway, gateway
from tests.support.waiting import until
from tests.toolformer import tool_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

CANCELLED = 'toolformer_completions_total{finish_reason="cancelled"}'


async def leave_when(event: asyncio.Event, running: Gateway, **body: Any) -> None:
    """Ask for a completion and close the connection once ``event`` has happened."""
    async with httpx.AsyncClient(base_url=running.url, timeout=60, trust_env=False) as client:
        asking = asyncio.create_task(client.post("/v1/completions", json={"max_tokens": 40, **body}))
        async with asyncio.timeout(60):
            await event.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_during_a_tool_call(stream: bool) -> None:
    async with tool_service.serve(tool_service.silent) as tool, gateway({"Calculator": tool.url}) as running:
        await leave_when(tool.arrived, running, prompt=["Sum:", "Two:"], n=2, stream=stream)
        async with asyncio.timeout(60):
            await tool.client_left.wait()  # the call itself is aborted, not only its result
        await running.idle()
        assert (await running.complete("Plain:"))["choices"][0]["text"] == " a plain text."
        assert await running.metric(CANCELLED) == 4
        assert await running.metric("toolformer_num_requests_in_call") == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_leaving_while_waiting_for_others(stream: bool) -> None:
    async with gateway(limits={"max_sequences": 1}) as running:
        holding = asyncio.create_task(running.http.post("/v1/completions", json={"prompt": "Slow:", "max_tokens": 200}))
        await until(lambda: running.backend.stats().running > 0)
        queued = asyncio.Event()

        async def until_queued() -> None:
            await until(lambda: running.backend.stats().waiting > 0)
            queued.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(until_queued())
            group.create_task(leave_when(queued, running, prompt="Plain:", stream=stream))
        await until(lambda: running.backend.stats().waiting == 0)
        holding.cancel()


async def test_leaving_in_the_middle_of_a_text(plain: Gateway) -> None:
    body = {"prompt": ["Long:"] * 3, "max_tokens": 200, "stream": True}
    for _ in range(5):
        async with plain.http.stream("POST", "/v1/completions", json=body) as response:
            await anext(response.aiter_raw())
        await plain.idle()
    assert await plain.metric("toolformer_num_requests_running") == 0


async def test_a_client_that_stops_reading_holds_no_row(plain: Gateway) -> None:
    """Its text is made to the end meanwhile; when it leaves at last, its request ends too."""
    body = json.dumps({"prompt": "Long:", "n": 4, "max_tokens": 100, "stream": True}).encode()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])
    leaves = asyncio.Event()

    async def receive() -> Message:
        message = next(messages, None)
        if message is None:
            await leaves.wait()
        return message or {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        await asyncio.Event().wait()  # the buffers are full

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/completions", "query_string": b"", "headers": headers}
    serving = asyncio.create_task(plain.app(scope, receive, send))
    async with asyncio.timeout(60):
        while await plain.metric('toolformer_completions_total{finish_reason="length"}') < 4:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
    await plain.idle()
    assert not serving.done()
    leaves.set()
    async with asyncio.timeout(60):
        await serving


async def test_a_client_that_never_reads_again_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "SEND_SECONDS", 0.05)
    closed = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            while True:
                yield event_stream.KEEP_ALIVE
        finally:
            closed.append(True)

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(60):
        await event_stream.EventStream(events())({"type": "http"}, never, never)
    assert closed == [True]


async def test_a_backlog_for_a_client_that_left_is_not_written_on() -> None:
    """A closed connection takes whatever it is sent at once: without a turn for others nobody hears that it closed."""
    written = 0
    left = asyncio.Event()

    async def backlog() -> AsyncGenerator[bytes, None]:
        while True:
            yield b"data: {}\n\n"

    async def receive() -> Message:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal written
        written += 1
        if written == 10:
            left.set()

    async with asyncio.timeout(30):
        await event_stream.EventStream(backlog())({"type": "http"}, receive, send)
    assert written < 30
