"""A request's body comes whole, within its size and its time, before anything is done for it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolformer.http_api.errors import ApiError, error_response
from toolformer.http_api.middleware import HttpMiddleware

BODY_SECONDS: Final = 30.0
"""From the end of a request's head to the end of its body."""

BODIES_UNDER_WAY: Final = 64
"""Of the largest size, together in memory; with more, the one that has been coming for longest is dropped."""


def replayed(body: bytes, receive: Receive) -> Receive:
    """What gives ``body``, which was read already, in one piece, and then what ``receive`` gives."""
    unread: list[Message] = [{"type": "http.request", "body": body}]

    async def replay() -> Message:
        return unread.pop() if unread else await receive()

    return replay


class BodyLimit(HttpMiddleware):
    """What is below gets a request once its body is there, and gets it in one piece.

    A body above ``max_bytes``, declared or counted as it comes, is answered with 413 in the error shape; one that is
    not there after ``seconds`` with 408. Nobody below waits for a client that is slow to send, and bodies that never
    end hold no more than `BODIES_UNDER_WAY` times ``max_bytes`` together.
    """

    def __init__(self, app: ASGIApp, max_bytes: int, seconds: float = BODY_SECONDS) -> None:
        super().__init__(app)
        self.max_bytes = max_bytes
        self.seconds = seconds
        self._coming: dict[asyncio.Timeout, int] = {}
        """Bytes that are here of each body under way, the oldest first."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        headers = Headers(scope=scope)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self.app(scope, receive, send)
            return
        try:
            body = await self._whole(headers.get("content-length", ""), receive)
        except ApiError as refusal:
            await error_response(refusal)(scope, receive, send)
            return
        await self.app(scope, replayed(body, receive), send)

    async def _whole(self, declared: str, receive: Receive) -> bytes:
        """The body.

        Raises:
            ApiError: 413 or 408.
            ClientDisconnect: the client left.
        """
        # A length that is not a number is the server's to refuse; what comes is counted all the same.
        if declared.isdecimal() and int(declared) > self.max_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        received = 0
        try:
            async with asyncio.timeout(self.seconds) as deadline:
                try:
                    more = True
                    while more:
                        message = await receive()
                        if message["type"] == "http.disconnect":
                            raise ClientDisconnect
                        parts.append(message.get("body", b""))
                        received += len(parts[-1])
                        if received > self.max_bytes:
                            raise self._too_large()
                        more = message.get("more_body", False)
                        self._coming[deadline] = received
                        self._make_room()
                finally:
                    self._coming.pop(deadline, None)
        except TimeoutError:
            late = f"the body was not there after {self.seconds:g} s, or too many others were coming; send it again"
            raise ApiError(408, late, code="too_slow", headers={"Connection": "close"}) from None
        return b"".join(parts)

    def _make_room(self) -> None:
        if sum(self._coming.values()) > BODIES_UNDER_WAY * self.max_bytes:
            oldest = next(iter(self._coming))
            del self._coming[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())

    def _too_large(self) -> ApiError:
        message = f"the body is larger than {self.max_bytes:,} bytes; send less, or split it"
        return ApiError(413, message)  # and the rest is read for a while: a client that still sends would miss it
