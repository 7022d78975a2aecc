"""A stand-in for the gateway over real HTTP: it remembers what it was asked and answers in pieces a test gives."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

DONE = b"data: [DONE]\n\n"


def chunk(text: str, *, finish: str | None = None, tool_calls: list[dict[str, Any]] | None = None) -> bytes:
    """One event of a completion's stream."""
    choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
    if tool_calls is not None:
        choice["tool_calls"] = tool_calls
    event = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"


@dataclass
class Gateway:
    """Where it listens, and the bodies and heads (in lower case) of the requests it had."""

    url: str
    asked: list[dict[str, Any]] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)


@contextlib.asynccontextmanager
async def gateway(pieces: Sequence[bytes], status: str = "200 OK", *, hold: bool = False) -> AsyncIterator[Gateway]:
    """Answer every request with ``pieces``, each written apart, then close, or with ``hold`` stay silent."""
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        served.heads.append(head)
        served.asked.append(json.loads(await reader.readexactly(length)))
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n".encode())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if hold:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    served = Gateway(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server:
        yield served
        over.set()
