"""``HEAD`` wherever ``GET`` is: uptime monitors and load balancers ask for no more than the head."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class HeadAsGet:
    """Plain ASGI middleware: the app below answers ``HEAD`` as it answers ``GET``; the server leaves the body out.

    Add it first, so that it runs last: logs, metrics and spans then still see a ``HEAD``.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; see the class."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        # The server looks at its own scope to see that no body may go out, so the method is changed in a copy.
        below = {**scope, "method": "GET"}
        try:
            await self.app(below, receive, send)
        finally:
            scope.update({**below, "method": "HEAD"})  # what the router found, for the metrics
