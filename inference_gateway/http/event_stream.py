"""Server-sent events: the bytes on the wire, and the response that carries them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Coroutine, Mapping
from typing import Any, Final, TypeVar

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

T = TypeVar("T")


class ClientLeft(Exception):  # noqa: N818 - reads as what happened
    """The client closed its connection before it had its answer."""


async def while_connected(receive: Receive, work: Coroutine[None, None, T]) -> T:
    """The result of ``work``, which is cancelled as soon as the client leaves or this call itself is cancelled.

    ``work`` has ended, cleaning up included, when this returns. The request's body must have been read before.

    Raises:
        ClientLeft: if the client left first.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientLeft
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


DONE: Final = b"data: [DONE]\n\n"
KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment: readers skip it, and anyone who closes idle connections sees that this one is not."""

SEND_SECONDS: Final = 60.0
"""How long a client may leave the connection's buffers full before it counts as gone."""


def data(value: Mapping[str, Any]) -> bytes:
    """One event that carries ``value`` as JSON."""
    # ASCII only: some clients split lines at every Unicode line break, U+2028 for one, which JSON allows in a string.
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


class EventStream(Response):
    """Sends what ``events`` yields, and closes it when the client leaves.

    The response starts with the first bytes, so an error raised before them still gets a status of its own.
    """

    media_type = "text/event-stream"

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        # The base class would give a length to the (empty) body it is made with.
        self.status_code = 200
        self.background = None
        self.init_headers({"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream to the end, or until the client leaves."""
        with contextlib.suppress(ClientLeft):
            await while_connected(receive, self._stream(send))

    async def _stream(self, send: Send) -> None:
        async def deliver(message: Message) -> None:
            try:
                async with asyncio.timeout(SEND_SECONDS):
                    await send(message)
            except TimeoutError:
                raise ClientLeft from None

        started = False
        async with contextlib.aclosing(self._events) as events:
            async for piece in events:
                if not started:
                    started = True
                    await deliver({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await deliver({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(0)  # a send that need not wait gives nobody a turn, and much may have queued up
        await deliver({"type": "http.response.body", "body": b"", "more_body": False})
