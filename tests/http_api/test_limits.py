"""The body limit: declared or streamed, to the byte, without holding anything back."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Message, Scope

from http_api import BodyLimit, install_error_handlers
from tests.http_api.asgi import error_of, running

LIMIT = 1_000


class Sink:
    """An app that counts what reaches it."""

    def __init__(self) -> None:
        self.app = FastAPI()
        self.received = 0
        self.disconnected = False
        self.app.add_middleware(BodyLimit, max_bytes=LIMIT)
        install_error_handlers(self.app)

        @self.app.post("/sink")
        async def sink(request: Request) -> int:
            try:
                async for part in request.stream():
                    self.received += len(part)
            except ClientDisconnect:
                self.disconnected = True
                raise
            return self.received

        @self.app.post("/echo")
        async def echo(request: Request) -> StreamingResponse:
            return StreamingResponse(request.stream())

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
    assert sink.received == 900
    assert sink.disconnected


@pytest.mark.parametrize("declared", ["-5", "many", "²", ""])
async def test_a_length_that_is_no_number_does_not_open_the_gate(declared: str) -> None:
    sink = Sink()
    async with running(sink.app) as client:
        headers = [(b"Content-Length", declared.encode())]
        response = await client.post("/sink", content=parts(300, 10), headers=headers)
    assert response.status_code == 413


async def test_a_response_under_way_is_broken_off_not_mixed_with_a_413() -> None:
    sink = Sink()
    sent: list[Message] = []
    incoming = [{"type": "http.request", "body": b"x" * 400, "more_body": True} for _ in range(5)]

    async def receive() -> Message:
        return incoming.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    with pytest.raises(ClientDisconnect):
        await sink.app(post("/echo"), receive, send)
    assert [message["status"] for message in sent if message["type"] == "http.response.start"] == [200]
    assert sum(len(message.get("body", b"")) for message in sent) == 800
    assert len(incoming) == 2  # The third part was one too many; the others were never asked for.


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

    await sink.app(post("/sink"), receive, send)
    assert sink.disconnected
    assert sent == []
    assert caplog.records == []


async def test_an_app_that_reads_no_body_answers_as_ever() -> None:
    async with running(Sink().app) as client:
        response: httpx.Response = await client.post("/blind", content=parts(300, 1))
    assert response.json() == "read nothing"
