"""A server with ``/v1/completions``: vLLM, SGLang, llama.cpp, another gateway.

It is used as a plain model server. What it can do is found by asking it (`openai_survey.py`), never by its version."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

import httpx

from inference_gateway.backends.model_server import (
    Abilities,
    Cached,
    RequestRefused,
    Segment,
    SegmentEnd,
    SegmentItem,
    ServerAddress,
    ServerError,
)
from inference_gateway.backends.openai_survey import survey
from inference_gateway.backends.openai_wire import Chunk, ChunkReader, Dialect, body_of, message_of
from inference_gateway.backends.pauses import Pauses
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.retry_after import retry_after_s
from toolformer.sse import EventTooLargeError, read_events

log = logging.getLogger(__name__)

_CONNECT_SECONDS: Final = 5.0
_ASK_SECONDS: Final = 5.0
_REST_SECONDS: Final = 2.0
"""How long a stream that has told its end may take for the usage and ``[DONE]``."""
_TRY_AGAIN: Final = frozenset({429, 502, 503, 504})
_REFUSALS: Final = frozenset({400, 404, 405, 413, 422, 501})
_MAX_BODY: Final = 1024 * 1024


class OpenAIServer:
    """See :class:`~inference_gateway.backends.model_server.ModelServer`. ``max_top``: most likely tokens to ask for at
    most (vLLM allows 20 unless started with another ``--max-logprobs``, OpenAI 5)."""

    def __init__(self, address: ServerAddress, tokenizer: ByteLevelTokenizer, max_top: int = 20) -> None:
        self.url = address.url.rstrip("/").removesuffix("/v1")
        self.tokenizer = tokenizer
        self.max_top = max_top
        self.address = address
        self._reader = ChunkReader(tokenizer)
        self._dialect = Dialect(address.model or "")
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {address.api_key}"} if address.api_key else {},
            timeout=httpx.Timeout(address.silence_seconds, connect=_CONNECT_SECONDS, pool=_CONNECT_SECONDS),
            # The probes must not wait for a completion to end.
            limits=httpx.Limits(max_connections=address.connections + 2),
            trust_env=False,
        )

    async def survey(self) -> Abilities:
        self._dialect, abilities = await survey(self)
        return abilities

    async def ping(self) -> None:
        await self.models()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def models(self) -> list[dict[str, Any]]:
        """The server's list of models.

        Raises:
            ServerError: if it gives none.
        """
        try:
            response = await self._http.get("/v1/models", timeout=_ASK_SECONDS)
            if response.status_code != 200:
                raise ServerError(f"{self.url}/v1/models answers {response.status_code}: {_told(response)}")
            return [model for model in response.json()["data"] if isinstance(model["id"], str)]
        except httpx.HTTPError as error:
            raise ServerError(f"{self.url} cannot be reached: {_said(error)}") from error
        except (ValueError, LookupError, TypeError) as error:
            raise ServerError(f"{self.url}/v1/models answers with what is no list of models") from error

    async def stream(self, segment: Segment) -> AsyncGenerator[SegmentItem, None]:
        ended: Chunk | None = None
        cached: int | None = None
        async with contextlib.aclosing(self.chunks(segment, self._dialect)) as chunks:
            async for chunk in chunks:
                cached = cached if chunk.cached_tokens is None else chunk.cached_tokens
                if chunk.finish_reason is not None:
                    # The last steps wait for what follows them, so that the usage is known when they end a completion.
                    ended = ended or chunk
                elif ended is None:
                    for step in chunk.steps:
                        yield step
        assert ended is not None
        if cached is not None:
            yield Cached(cached)
        for step in ended.steps:
            yield step
        yield SegmentEnd("stop" if ended.finish_reason == "stop" else "length")

    async def chunks(self, segment: Segment, dialect: Dialect) -> AsyncGenerator[Chunk, None]:
        """The chunks of one request, of which exactly one has a finish reason.

        Raises:
            RequestRefused: if the server does not take the request.
            ServerError: if it fails, dies, falls silent or sends what cannot be read.
        """
        body = body_of(segment, dialect, self.tokenizer)
        headers = {"X-Request-Id": segment.request_id} if segment.request_id else {}
        ended = False
        try:
            async with self._opened(body, headers) as response:
                events = read_events(response.aiter_bytes())
                while not ended:
                    data = await anext(events, "[DONE]")
                    if data == "[DONE]":
                        raise ServerError(f"{self.url} ended a stream without saying why")
                    chunk = self._reader.read(data)
                    if chunk.finish_reason not in (None, "stop", "length"):
                        raise ServerError(f"{self.url} ended a stream with {chunk.finish_reason!r}")
                    ended = chunk.finish_reason is not None
                    yield chunk
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_REST_SECONDS):
                        while (data := await anext(events, "[DONE]")) != "[DONE]":
                            yield self._reader.read(data)
        except EventTooLargeError as error:
            raise ServerError(f"the model server sent nonsense: {error}") from error
        except httpx.HTTPError as error:
            if not ended:
                raise ServerError(f"{self.url} broke off: {_said(error)}") from error

    @contextlib.asynccontextmanager
    async def _opened(self, body: dict[str, Any], headers: dict[str, str]) -> AsyncIterator[httpx.Response]:
        """The response to ``body``, status 200. Tried again only where the server cannot have begun: where it could
        not be reached, or said that it is busy."""
        pauses = Pauses()
        while True:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    request = self._http.stream("POST", "/v1/completions", json=body, headers=headers)
                    response = await stack.enter_async_context(request)
                except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                    problem, wait = f"cannot be reached: {_said(error)}", 0.0
                else:
                    if response.status_code == 200:
                        yield response
                        return
                    told = await _read_error(response)
                    if response.status_code in _REFUSALS:
                        raise RequestRefused(f"{self.url} refuses the request ({response.status_code}): {told}")
                    problem, wait = f"answers {response.status_code}: {told}", retry_after_s(response.headers)
                    if response.status_code not in _TRY_AGAIN:
                        raise ServerError(f"{self.url} {problem}")
            if not await pauses.wait(at_least=wait):
                raise ServerError(f"{self.url} {problem}")


async def _read_error(response: httpx.Response) -> str:
    body = b""
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > _MAX_BODY:
            break
    try:
        return message_of(json.loads(body))
    except ValueError:
        return message_of(body.decode(errors="replace"))


def _told(response: httpx.Response) -> str:
    try:
        return message_of(response.json())
    except ValueError:
        return message_of(response.text)


def _said(error: httpx.HTTPError) -> str:
    return str(error) or type(error).__name__
