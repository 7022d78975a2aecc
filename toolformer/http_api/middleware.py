"""What plain ASGI middleware has in common."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HttpMiddleware:
    """Plain ASGI middleware around ``app``: `handle` gets the HTTP requests, all else passes."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; see the class."""
        await (self.handle if scope["type"] == "http" else self.app)(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        raise NotImplementedError


class Sent:
    """Passes a response on and remembers its ``status``, 0 before it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send ``message``."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)
