"""Who may come in: API keys in front of everything but what is open on purpose, and room for completions."""

from __future__ import annotations

import math
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from http_api import ApiError
from http_api.errors import error_response
from inference_gateway.api_keys import ApiKeys
from inference_gateway.http.playground import PAGE_PATHS
from inference_gateway.quotas import OverQuota, Quotas

OPEN_PATHS: Final = PAGE_PATHS | {"/health", "/ready", "/docs", "/openapi.json"}
"""Open to everybody: the page, which asks for a key itself, probes, and the description of the API."""


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


class Admission:
    """Plain ASGI middleware: a completion is let in while there is room, and holds it until its answer has ended."""

    def __init__(self, app: ASGIApp, quotas: Quotas, path: str) -> None:
        self.app = app
        self._quotas = quotas
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app below; see the class."""
        if scope["type"] != "http" or scope["path"] != self._path or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        try:
            with self._quotas.admitted(scope["state"]["client"]):
                await self.app(scope, receive, send)
        except OverQuota as over:
            await error_response(no_room(over))(scope, receive, send)


def client_of(keys: ApiKeys, authorization: str) -> str | None:
    """The name of the key in ``authorization``, ``Bearer <key>``; ``None`` where no keys are asked for.

    Raises:
        ApiError: 401 if it holds none of ``keys``.
    """
    if not keys.required:
        return None
    scheme, _, presented = authorization.partition(" ")
    client = keys.name_of(presented.strip()) if scheme.lower() == "bearer" else None
    if client is None:
        raise _refusal(given=bool(presented))
    return client


def no_room(over: OverQuota) -> ApiError:
    """What a client is told that is not let in now."""
    seconds = max(1, math.ceil(over.retry_after))
    status, code = (503, "busy") if over.everybody else (429, "rate_limit_exceeded")
    return ApiError(status, f"{over}; try again in {seconds} s", code=code, headers={"Retry-After": str(seconds)})


def _refusal(*, given: bool) -> ApiError:
    if given:
        message = "the API key is not one of this gateway's; check it, or ask its operator for one"
        challenge = 'Bearer realm="toolformer", error="invalid_token"'
        return ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": challenge})
    message = "an API key is needed; send it as 'Authorization: Bearer <key>'"
    return ApiError(401, message, code="missing_api_key", headers={"WWW-Authenticate": 'Bearer realm="toolformer"'})
