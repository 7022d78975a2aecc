"""A connection that stays open and reads the gateway's answers as they come.

The bare streams of asyncio: a general HTTP client would take more processor time than the gateway it measures."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from toolformer.sse import read_events

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


def post(path: str, body: object, headers: Mapping[str, str] | None = None) -> bytes:
    """A POST request with a JSON body, ready to be sent."""
    content = json.dumps(body).encode()
    fields: dict[str, object] = {"Host": "localhost", "Content-Type": "application/json"}
    fields |= {"Content-Length": len(content), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + content


class Refused(Exception):  # noqa: N818 - a state, not a fault
    """The server answered with ``status`` and an error."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"HTTP {status}: {body.decode(errors='replace')[:300]}")
        self.status = status


class BrokenStream(Exception):  # noqa: N818 - says what it is
    """An answer is not what the gateway promises."""


class Connection:
    """One connection, for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, url: str) -> Connection:
        """Connect to ``url``."""
        address = urlsplit(url)
        return cls(*await asyncio.open_connection(address.hostname, address.port, limit=2**22))

    def close(self) -> None:
        """Close it, whatever is under way."""
        self._writer.close()

    def reset(self) -> None:
        """Drop it without a farewell."""
        self._writer.transport.abort()

    async def events(self, request: bytes) -> AsyncGenerator[dict[str, Any], None]:
        """Send ``request`` and give the events of the answer, ``[DONE]`` left out.

        Raises:
            Refused: if the status is not 200.
            BrokenStream: if ``[DONE]`` does not come exactly once and last.
        """
        await self._head_of(request)
        done = False
        async for data in read_events(self._chunks()):
            if done:
                raise BrokenStream(f"something came behind [DONE]: {data[:200]!r}")
            done = data == "[DONE]"
            if not done:
                yield json.loads(data)
        if not done:
            raise BrokenStream("the stream ended without [DONE]")

    async def whole(self, request: bytes) -> dict[str, Any]:
        """Send ``request`` and give the JSON of the answer.

        Raises:
            Refused: if the status is not 200.
        """
        return dict(json.loads(await self._body(await self._head_of(request))))

    async def send(self, request: bytes) -> None:
        """Send ``request`` and read nothing."""
        self._writer.write(request)
        await self._writer.drain()

    async def _head_of(self, request: bytes) -> bytes:
        """The head of the answer to ``request``, whose status is 200."""
        await self.send(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
        if status != 200:
            raise Refused(status, await self._body(head))
        return head

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int((await self._reader.readuntil(b"\r\n"))[:-2], 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readexactly(2)

    async def _body(self, head: bytes) -> bytes:
        length = _LENGTH.search(head)
        return await self._reader.readexactly(int(length.group(1)) if length else 0)


class Connections:
    """Connections to one server, kept open from request to request; a context manager."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._idle: deque[Connection] = deque()
        """They take turns, so that under load none is idle for so long that the server closes it."""

    async def __aenter__(self) -> Connections:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._idle:
            connection.close()

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """A connection for one request; not used again if that fails."""
        connection = self._idle.popleft() if self._idle else await Connection.open(self._url)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
