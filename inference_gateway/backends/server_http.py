"""Requests to a model server over HTTP: patience, refusals and streams of events, whatever the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import httpx

from inference_gateway.backends.model_server import RequestRefused, ServerAddress, ServerError
from toolformer.retry_after import retry_after_s
from toolformer.sse import EventTooLargeError, read_events

_CONNECT_SECONDS: Final = 5.0
_ASK_SECONDS: Final = 5.0
_TRY_AGAIN: Final = frozenset({429, 502, 503, 504})
_REFUSALS: Final = frozenset({400, 404, 405, 413, 422, 501})
_MAX_BODY: Final = 1024 * 1024
_MESSAGE_CHARACTERS: Final = 300

_ATTEMPTS: Final = 3
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0


class BrokeOff(ServerError):  # noqa: N818 - reads as what happened
    """The connection ended, or fell silent, in the middle of a stream."""


class Pauses:
    """The pauses between the attempts of one request: each twice the one before, in seconds, and not too many."""

    def __init__(self) -> None:
        self._left = _ATTEMPTS - 1
        self._next = _FIRST_PAUSE

    async def wait(self, *, at_least: float = 0.0) -> bool:
        """Wait for the next attempt's time; false, at once, if there shall be none."""
        if self._left == 0:
            return False
        self._left -= 1
        # Many gateways may have been turned away together; they shall not come back together.
        await asyncio.sleep(min(max(self._next * random.uniform(0.5, 1.0), at_least), _LONGEST_PAUSE))
        self._next *= 2
        return True


class ServerHttp:
    """The connections to the server at ``url``; its key and its patience are ``address``'s."""

    def __init__(self, url: str, address: ServerAddress) -> None:
        self._url = url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {address.api_key}"} if address.api_key else {},
            timeout=httpx.Timeout(address.silence_seconds, connect=_CONNECT_SECONDS, pool=_CONNECT_SECONDS),
            # The probes must not wait for a completion to end.
            limits=httpx.Limits(max_connections=address.connections + 2),
            trust_env=False,
        )
        self._closing: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Close connections."""
        await asyncio.gather(*self._closing)
        await self._http.aclose()

    async def get(self, path: str) -> Any:
        """The JSON at ``path``; ``None`` if it is none.

        Raises:
            ServerError: if there is no answer, or one with another status than 200.
        """
        try:
            response = await self._http.get(path, timeout=_ASK_SECONDS)
        except httpx.HTTPError as error:
            raise ServerError(f"{self._url} cannot be reached: {_said(error)}") from error
        if response.status_code != 200:
            raise ServerError(f"{self._url}{path} answers {response.status_code}: {_message_in(response.content)}")
        try:
            return response.json()
        except ValueError:
            return None

    async def events(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> AsyncGenerator[str, None]:
        """The data of the events that a POST of ``body`` is answered with.

        Raises:
            RequestRefused: if the server does not take the request.
            ServerError: if it fails or sends an event without end; `BrokeOff` if it dies or falls silent.
        """
        try:
            async with self._opened(path, body, headers or {}) as response:
                async for data in read_events(response.aiter_bytes()):
                    yield data
        except EventTooLargeError as error:
            raise ServerError(f"the model server sent nonsense: {error}") from error
        except httpx.HTTPError as error:
            raise BrokeOff(f"{self._url} broke off: {_said(error)}") from error

    @contextlib.asynccontextmanager
    async def _opened(
        self, path: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """The response to ``body``, status 200. Tried again only where the server cannot have begun: where it could
        not be reached, or said that it is busy."""
        pauses = Pauses()
        while True:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    request = self._http.build_request("POST", path, json=body, headers=headers)
                    response = await self._http.send(request, stream=True)
                except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                    problem, wait = f"cannot be reached: {_said(error)}", 0.0
                else:
                    stack.push_async_callback(self._close, response)
                    if response.status_code == 200:
                        yield response
                        return
                    message = await _read_error(response)
                    if response.status_code in _REFUSALS:
                        raise RequestRefused(f"{self._url} refuses the request ({response.status_code}): {message}")
                    problem, wait = f"answers {response.status_code}: {message}", retry_after_s(response.headers)
                    if response.status_code not in _TRY_AGAIN:
                        raise ServerError(f"{self._url} {problem}")
            if not await pauses.wait(at_least=wait):
                raise ServerError(f"{self._url} {problem}")

    async def _close(self, response: httpx.Response) -> None:
        """Close ``response``, to the end even if the task that waits for it is cancelled meanwhile: httpx would never
        give its connection free again."""
        closing = asyncio.create_task(response.aclose())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)


def message_of(event: Any) -> str:
    """What an error's JSON says, in any of the shapes that servers give it."""
    error = event.get("error", event) if isinstance(event, dict) else event
    for name in ("message", "detail", "error"):
        if isinstance(error, dict) and error.get(name):
            error = error[name]
    return str(error)[:_MESSAGE_CHARACTERS]


async def _read_error(response: httpx.Response) -> str:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MAX_BODY:
            break
    return _message_in(body)


def _message_in(body: bytes) -> str:
    try:
        return message_of(json.loads(body))
    except ValueError:
        return message_of(body.decode(errors="replace"))


def _said(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
