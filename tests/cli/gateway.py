"""A stand-in for the gateway over real HTTP: it remembers what it was asked and answers in pieces a test gives."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.toolformer.tool_service import Seen, Service, serve

DONE = b"data: [DONE]\n\n"


def chunk(text: str, *, finish: str | None = None, tool_calls: list[dict[str, Any]] | None = None) -> bytes:
    """One event of a completion's stream."""
    choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
    if tool_calls is not None:
        choice["tool_calls"] = tool_calls
    event = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"


def gateway(
    pieces: Sequence[bytes], status: str = "200 OK", *, hold: bool = False
) -> AbstractAsyncContextManager[Service]:
    """Answer every request with ``pieces``, each written apart, then close, or with ``hold`` stay silent."""

    async def behave(_: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n".encode())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if hold:
            await asyncio.Event().wait()
        raise ConnectionError  # a text without a length ends with its connection

    return serve(behave)
