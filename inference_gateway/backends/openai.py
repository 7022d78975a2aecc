"""A server with ``/v1/completions``: vLLM, SGLang, llama.cpp, another gateway.

It is used as a plain model server. What it can do is found by asking it (`openai_survey.py`), never by its version."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Final

from inference_gateway.backends.model_server import (
    Abilities,
    Cached,
    Segment,
    SegmentEnd,
    SegmentItem,
    ServerAddress,
    ServerError,
)
from inference_gateway.backends.openai_survey import survey
from inference_gateway.backends.openai_wire import Chunk, ChunkReader, Dialect, body_of
from inference_gateway.backends.server_http import BrokeOff, ServerHttp
from language_model.tokenizer import ByteLevelTokenizer

_REST_SECONDS: Final = 2.0
"""How long a stream that has reported its end may take for the usage and ``[DONE]``."""


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
        self._http = ServerHttp(self.url, address)

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
        listed = await self._http.get("/v1/models")
        try:
            return [model for model in listed["data"] if isinstance(model["id"], str)]
        except (LookupError, TypeError) as error:
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
        async with contextlib.aclosing(self._http.events("/v1/completions", body, headers)) as events:
            while not ended:
                data = await anext(events, "[DONE]")
                if data == "[DONE]":
                    raise ServerError(f"{self.url} ended a stream without saying why")
                chunk = self._reader.read(data)
                if chunk.finish_reason not in (None, "stop", "length"):
                    raise ServerError(f"{self.url} ended a stream with {chunk.finish_reason!r}")
                ended = chunk.finish_reason is not None
                yield chunk
            with contextlib.suppress(TimeoutError, BrokeOff):
                async with asyncio.timeout(_REST_SECONDS):
                    while (data := await anext(events, "[DONE]")) != "[DONE]":
                        yield self._reader.read(data)
