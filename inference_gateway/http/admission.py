"""Who may come in: API keys in front of everything but what is open on purpose, and room for completions."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from inference_gateway.api_keys import ApiKeys
from inference_gateway.quotas import OverQuota, Quotas
from inference_gateway.serving.refusals import client_of, no_room
from toolformer.http_api import API_PAGE, ApiError, Page
from toolformer.http_api.errors import error_response
from toolformer.http_api.middleware import HttpMiddleware

PLAYGROUND: Final = Page(Path(__file__).parents[1] / "playground", path="/", parts="/playground")
"""It also uses the style of `http_api.API_PAGE`."""


OPEN_PATHS: Final = PLAYGROUND.paths | API_PAGE.paths | {"/health", "/ready", "/openapi.json"}
"""Open to everybody: the pages, which ask for a key themselves, probes, and the description of the API."""


class RequireKey:
    """Plain ASGI middleware: ``Authorization: Bearer <key>``, or 401. What is not in ``open_paths`` needs a key, also
    what does not exist. ``scope["state"]["client"]`` is the key's name, or ``None`` where no keys are asked for."""

    def __init__(self, app: ASGIApp, keys: ApiKeys, open_paths: frozenset[str]) -> None:
        self.app = app
        self._keys = keys
        self._open = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; see the class."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # The server closes what is not answered; nothing but HTTP is served here.
        client = None
        if scope["path"] not in self._open:
            try:
                client = client_of(self._keys, Headers(scope=scope).get("authorization", ""))
            except ApiError as refusal:
                await error_response(refusal)(scope, receive, send)
                return
        scope.setdefault("state", {})["client"] = client
        await self.app(scope, receive, send)


class Admission(HttpMiddleware):
    """A completion is let in while there is room, and holds it until its answer has ended."""

    def __init__(self, app: ASGIApp, quotas: Quotas, paths: frozenset[str]) -> None:
        super().__init__(app)
        self._quotas = quotas
        self._paths = paths

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the class."""
        if scope["path"] not in self._paths or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            with self._quotas.admitted(scope["state"]["client"]):
                await self.app(scope, receive, send)
        except OverQuota as over:
            await error_response(no_room(over))(scope, receive, send)
