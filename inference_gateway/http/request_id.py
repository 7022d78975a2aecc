"""An id for every request: the client's own or a new one, in the answer and on the way to the tools."""

from __future__ import annotations

import re
import uuid
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER: Final = "X-Request-Id"
_SENSIBLE: Final = re.compile(r"[!-~]{1,128}")
"""What is taken over from a client: short and printable, so that it can stand in a log and in a header."""


class RequestId:
    """Plain ASGI middleware: ``scope["state"]["request_id"]``, and the header ``X-Request-Id`` of every response."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; see the class."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _SENSIBLE.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id

        async def labelled_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        await self.app(scope, receive, labelled_send)
