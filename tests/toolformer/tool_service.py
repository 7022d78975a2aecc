"""A tool service that behaves as a test says, over real sockets: also in ways no HTTP framework would let it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Seen:
    """One request as it arrived; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Behaviour = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Service:
    """A running service: its address, what it has seen, and whether a client has left a request it was waiting for."""

    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    client_left: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def calls(self) -> list[Any]:
        """The bodies of the calls and batches seen."""
        return [seen.json for seen in self.seen if seen.method == "POST"]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serve(behave: Behaviour, port: int = 0) -> AsyncIterator[Service]:
    """Serve ``behave`` on ``port`` (0: a free one) until left; then connections are dropped and the port refuses."""
    service = Service()
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if not server.is_serving():  # accepted at the very end: nobody would cancel it any more
            writer.close()
            return
        connections.add(task)
        try:
            while (seen := await _read(reader)) is not None:
                service.seen.append(seen)
                service.arrived.set()
                await _behave_while_connected(behave, seen, reader, writer, service)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the end of a connection, by the client or by leaving `serve`
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    service.port = server.sockets[0].getsockname()[1]
    try:
        yield service
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()


async def _behave_while_connected(
    behave: Behaviour, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, service: Service
) -> None:
    # The client sends nothing more until it is answered, so a read can only end when it leaves.
    doing = asyncio.ensure_future(behave(seen, writer))
    leaving = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            await doing
        else:
            service.client_left.set()
            raise ConnectionError
    finally:
        doing.cancel()
        leaving.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        request, *lines = head.split("\r\n")
        method, path, _ = request.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
    except asyncio.IncompleteReadError:
        return None
    return Seen(method, path, headers, body)


def response(status: int, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    """An HTTP response as bytes."""
    given = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode("latin-1") + body


def answers(make: Callable[[Any], Any], version: str | None = None) -> Behaviour:
    """Answer 200 with what ``make`` gives for the request's JSON; bytes are sent as they are.

    ``GET /ready`` is answered too. With ``version`` the answers name it.
    """

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        made = {"status": "ready"} if seen.method == "GET" else make(seen.json)
        body = made if isinstance(made, bytes) else json.dumps(made).encode()
        writer.write(response(200, body, None if version is None else {"Tool-Version": version}))
        await writer.drain()

    return behave


def status(code: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Behaviour:
    """Answer with this status."""
    return sends(response(code, body, headers))


def sends(data: bytes) -> Behaviour:
    """Write these bytes, HTTP or not."""

    async def behave(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return behave


async def silent(_: Seen, __: asyncio.StreamWriter) -> None:
    """Take the request and never say anything."""
    await asyncio.Event().wait()


async def hang_up(_: Seen, writer: asyncio.StreamWriter) -> None:
    """Close the connection without an answer."""
    writer.close()
    raise ConnectionError


async def endless(_: Seen, writer: asyncio.StreamWriter) -> None:
    """Begin a proper answer that has no end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        writer.write(b" " * 65_536)
        await writer.drain()


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One after the other, a request each; the last stays."""
    waiting = list(behaviours)

    async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(seen, writer)

    return behave


def answer(tool: str, call: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A proper answer of ``tool`` to ``call``: the input in capitals, with ``changes``."""
    proper = {"tool": tool, "input": call["input"], "output": call["input"].upper(), "error": None, "duration_ms": 0.1}
    return proper | changes


def capitals(tool: str, version: str | None = None) -> Behaviour:
    """A well-behaved service of ``tool`` for single calls and for batches."""

    def make(asked: Any) -> Any:
        return {"calls": [answer(tool, call) for call in asked["calls"]]} if "calls" in asked else answer(tool, asked)

    return answers(make, version)
