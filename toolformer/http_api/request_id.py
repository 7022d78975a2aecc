"""An id for every request: the client's own or a new one, in the answer, in the log and on the way to the tools."""

from __future__ import annotations

import re
import uuid
from contextvars import ContextVar
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from toolformer.http_api.middleware import HttpMiddleware

REQUEST_ID_HEADER: Final = "X-Request-Id"
_SENSIBLE: Final = re.compile(r"[!-~]{1,128}")
"""What is taken over from a client: short and printable, so that it can stand in a log and in a header."""


request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered here; empty outside of one."""


def adopted(given: str) -> str:
    """The id for a request whose client gave ``given``: that, or a new one where it makes no sense."""
    return given if _SENSIBLE.fullmatch(given) else uuid.uuid4().hex


class RequestId(HttpMiddleware):
    """`request_id` below, and the header ``X-Request-Id`` of every response."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        own = adopted(Headers(scope=scope).get(REQUEST_ID_HEADER, ""))

        async def labelled_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[REQUEST_ID_HEADER] = own
            await send(message)

        token = request_id.set(own)
        try:
            await self.app(scope, receive, labelled_send)
        finally:
            request_id.reset(token)
