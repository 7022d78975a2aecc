"""``HEAD`` wherever ``GET`` is: uptime monitors and load balancers ask for no more than the head."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from toolformer.http_api.middleware import HttpMiddleware


class HeadAsGet(HttpMiddleware):
    """The app below answers ``HEAD`` as it answers ``GET``; the server leaves the body out.

    Add it first, so that it runs last: logs, metrics and spans then still see a ``HEAD``.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        # The server looks at its own scope to see that no body may go out, so the method is changed in a copy.
        below = {**scope, "method": "GET"}
        try:
            await self.app(below, receive, send)
        finally:
            scope.update({**below, "method": "HEAD"})  # what the router found, for the metrics
