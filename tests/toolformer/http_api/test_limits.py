"""The body limit: declared or streamed, to the byte, within its time, and before anything else is done."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.requests import ClientDisconnect
from starlette.types import Message, Scope

from tests.toolformer.http_api.asgi import error_of, running
from toolformer.http_api import BodyLimit, install_error_handlers
from toolformer.http_api.limits import BODIES_UNDER_WAY

LIMIT = 1_000


class Sink:
    """An app that counts what reaches it."""

    def __init__(self, seconds: float = 60) -> None:
        self.app = FastAPI()
        self.received = 0
        self.reached = self.disconnected = False
        self.app.add_middleware(BodyLimit, max_bytes=LIMIT, seconds=seconds)
        install_error_handlers(self.app)

        @self.app.post("/sink")
        async def sink(request: Request) -> int:
            self.reached = True
            try:
                async for part in request.stream():
                    self.received += len(part)
            except ClientDisconnect:
                self.disconnected = True
                raise
            return self.received

        @self.app.post("/blind")
        async def blind() -> str:
            return "read nothing"


async def parts(size: int, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"x" * size


def post(path: str) -> Scope:
    """What a server hands an app for a POST with a streamed body."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "scheme": "http",
        "server": ("test", 80),
        "client": ("test", 1),
        "root_path": "",
    }


async def test_a_body_of_just_the_limit_passes() -> None:
    sink = Sink()
    async with running(sink.app) as client:
        assert (await client.post("/sink", content=b"x" * LIMIT)).json() == LIMIT
        assert (await client.post("/sink", content=parts(100, 10))).json() == 2 * LIMIT


async def test_a_declared_length_too_large_never_reaches_the_app() -> None:
    sink = Sink()
    async with running(sink.app) as client:
        response = await client.post("/sink", content=b"x" * (LIMIT + 1))
    assert response.status_code == 413
    assert error_of(response)["code"] == "body_too_large"
    assert "1,000 bytes" in str(error_of(response)["message"])
    assert sink.received == 0


async def test_a_streamed_body_is_counted_and_stopped() -> None:
    sink = Sink()
    async with running(sink.app) as client:
        response = await client.post("/sink", content=parts(300, 1_000))
    assert response.status_code == 413
    assert error_of(response)["code"] == "body_too_large"
    assert sink.received == 0


@pytest.mark.parametrize("declared", ["-5", "many", "²", ""])
async def test_a_length_that_is_no_number_does_not_open_the_gate(declared: str) -> None:
    sink = Sink()
    async with running(sink.app) as client:
        headers = [(b"Content-Length", declared.encode())]
        response = await client.post("/sink", content=parts(300, 10), headers=headers)
    assert response.status_code == 413


class Slow:
    """A request whose body never ends: a part, and then nothing."""

    def __init__(self, size: int) -> None:
        self.first: list[Message] = [{"type": "http.request", "body": b"x" * size, "more_body": True}]
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if not self.first:
            await asyncio.Event().wait()
        return self.first.pop()

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    def __call__(self, sink: Sink) -> asyncio.Task[None]:
        scope = {**post("/sink"), "headers": [(b"content-length", b"1000")]}
        return asyncio.create_task(sink.app(scope, self.receive, self.send))


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    sink, slow = Sink(seconds=0.05), Slow(1)
    async with asyncio.timeout(60):
        await slow(sink)
    assert slow.sent[0]["status"] == 408
    assert (b"connection", b"close") in slow.sent[0]["headers"]
    assert not sink.reached


async def test_bodies_under_way_hold_so_many_bytes_and_no_more() -> None:
    sink = Sink()
    slow = [Slow(LIMIT - 1) for _ in range(BODIES_UNDER_WAY + 3)]
    tasks = [one(sink) for one in slow]
    async with asyncio.timeout(60):
        await asyncio.wait(tasks[:3])
    assert [one.sent[0]["status"] for one in slow if one.sent] == [408] * 3  # the oldest
    async with running(sink.app) as client:
        assert (await client.post("/sink", content=b"x" * LIMIT)).json() == LIMIT
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert not sink.disconnected


async def test_a_client_that_leaves_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    sink = Sink()
    incoming: list[Message] = [
        {"type": "http.request", "body": b"x" * 400, "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    await sink.app({**post("/sink"), "headers": [(b"transfer-encoding", b"chunked")]}, receive, send)
    assert not sink.reached
    assert sent == []
    assert caplog.records == []


async def test_an_app_that_reads_no_body_answers_as_ever() -> None:
    async with running(Sink().app) as client:
        response: httpx.Response = await client.post("/blind", content=parts(300, 1))
    assert response.json() == "read nothing"
