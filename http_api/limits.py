"""A limit on the size of a request's body, kept while the body arrives."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from http_api.errors import ApiError, error_response


class BodyLimit:
    """Plain ASGI middleware: a body above ``max_bytes`` is answered with 413 in the error shape.

    A declared ``Content-Length`` is refused before the application runs. A streamed body is counted as it arrives: at
    the first byte too many the 413 goes out and the application below sees its client leave, so it can neither read on
    nor answer. Nothing is held back here, so nothing is buffered, and responses stream through untouched.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self.app = app
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; see the class."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        refusal = error_response(
            ApiError(413, f"the body is larger than {self.max_bytes:,} bytes; send less, or split it")
        )
        declared = Headers(scope=scope).get("content-length", "")
        # A length that is not a number is the server's to refuse; streamed bytes are counted all the same.
        if declared.isdecimal() and int(declared) > self.max_bytes:
            await refusal(scope, receive, send)
            return

        received = 0
        started = refused = False

        async def counted_receive() -> Message:
            nonlocal received, refused
            if refused:
                return {"type": "http.disconnect"}
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self.max_bytes:
                    refused = True
                    if not started:
                        await refusal(scope, receive, send)
                    return {"type": "http.disconnect"}
            return message

        async def guarded_send(message: Message) -> None:
            nonlocal started
            if refused and not started:
                return  # The 413 is out; this is what the application says to a client that has left.
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, counted_receive, guarded_send)
        except ClientDisconnect:
            if not refused or started:
                raise
