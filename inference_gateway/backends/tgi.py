"""A text-generation-inference server, spoken to through `huggingface_hub`'s client.

TGI takes text, not token ids: it encodes what was generated again with each segment, so its ids can differ from those
the gateway holds. It streams the ids of its tokens, and with ``top_n_tokens`` the most likely ones (5 unless it was
started with another ``--max-top-n-tokens``). It has no ``logit_bias``. It is archived upstream; prefer ``openai``."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import Any, Final

import httpx
import httpx2
from huggingface_hub import AsyncInferenceClient, TextGenerationStreamOutput, set_async_client_factory
from huggingface_hub.errors import HfHubHTTPError, InferenceTimeoutError, OverloadedError, ValidationError

from inference_gateway.backends.model_server import (
    Abilities,
    RequestRefused,
    Segment,
    SegmentEnd,
    SegmentItem,
    ServerAddress,
    ServerError,
    Step,
    check_vocabulary,
    notices_of,
)
from inference_gateway.backends.pauses import Pauses
from inference_gateway.core import SamplingParams
from language_model.tokenizer import ByteLevelTokenizer

_ASK_SECONDS: Final = 5.0
_QUESTION: Final = "The quick brown fox jumps over"
_ANSWER_TOKENS: Final = 4
_UNREADABLE: Final = (httpx2.HTTPError, OSError, ValueError, TypeError, LookupError)
"""What the client raises of streams that die, fall silent, tell of an error or cannot be read."""
_NO_KEY: Final = "none"
"""Sent where no key is set: without one the client would send the Hugging Face token of this machine's user."""


class TGIServer:
    """See :class:`~inference_gateway.backends.model_server.ModelServer`. ``max_top``: most likely tokens to ask for at
    most."""

    def __init__(self, address: ServerAddress, tokenizer: ByteLevelTokenizer, max_top: int = 20) -> None:
        self.url = address.url.rstrip("/")
        self._address = address
        self._tokenizer = tokenizer
        self._max_top = max_top
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=self._headers(), timeout=_ASK_SECONDS, trust_env=False
        )
        self._certificates = ssl.create_default_context()
        # The whole process's setting, there is no other; nothing else here uses that client.
        set_async_client_factory(self._new_client)

    async def survey(self) -> Abilities:
        info = await self._info()
        segment = Segment(tuple(self._tokenizer.encode(_QUESTION)), _ANSWER_TOKENS, SamplingParams())
        top, events = 0, []
        for asked in [*(k for k in (self._max_top, 20, 10, 5, 1) if k <= self._max_top), 0]:
            with contextlib.suppress(RequestRefused):
                async with self._opened(replace(segment, top=asked)) as answer:
                    events = [event async for event in answer]
                top = min(asked, max(len(event.top_tokens or ()) for event in events))
                break
        told = [event.token for event in events if not event.token.special]
        check_vocabulary(self.url, self._tokenizer, [token.id for token in told], "".join(token.text for token in told))
        length = info.get("max_total_tokens")
        return Abilities(
            model=str(info.get("model_id", "tgi")),
            max_model_len=length if isinstance(length, int) else None,
            top=top,
            sampling_fields=frozenset({"repetition_penalty"}),
            notices=notices_of(ids=False, exact=True, top=top, bans=False),
        )

    async def ping(self) -> None:
        await self._info()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def stream(self, segment: Segment) -> AsyncGenerator[SegmentItem, None]:
        reason = ""
        async with self._opened(segment) as events:
            async for event in events:
                if event.details is not None:
                    reason = event.details.finish_reason
                yield _step(event)
        if not reason:
            raise ServerError(f"{self.url} ended a stream without saying why")
        yield SegmentEnd("length" if reason == "length" else "stop")

    @contextlib.asynccontextmanager
    async def _opened(self, segment: Segment) -> AsyncIterator[AsyncIterator[TextGenerationStreamOutput]]:
        """The events of ``segment``, the first of them already there. Tried again only where nothing had begun."""
        pauses = Pauses()
        while True:
            # A client of its own: closing it is the only way to end a stream that is under way.
            async with AsyncInferenceClient(
                self.url, token=self._address.api_key or _NO_KEY, timeout=self._address.silence_seconds
            ) as client:
                try:
                    events = aiter(
                        await client.text_generation(
                            self._tokenizer.decode(list(segment.ids)), stream=True, details=True, **_parameters(segment)
                        )
                    )
                    first = await anext(events)
                except (OverloadedError, httpx2.ConnectError) as error:
                    problem, cause = _said(error), error
                except ValidationError as error:
                    raise RequestRefused(f"{self.url} refuses the request: {_said(error)}") from error
                except StopAsyncIteration:
                    raise ServerError(f"{self.url} ended a stream without a token") from None
                except (HfHubHTTPError, InferenceTimeoutError) as error:
                    raise ServerError(f"{self.url} gives no answer: {_said(error)}") from error
                except _UNREADABLE as error:
                    raise ServerError(f"{self.url} broke off: {_said(error)}") from error
                else:
                    yield self._readable(first, events)
                    return
            if not await pauses.wait():
                raise ServerError(f"{self.url} gives no answer: {problem}") from cause

    def _new_client(self) -> httpx2.AsyncClient:
        """A client as the library makes it, without reading all certificates again, proxies and redirects."""

        async def read_error(response: httpx2.Response) -> None:
            if response.status_code >= 400:
                await response.aread()

        return httpx2.AsyncClient(
            verify=self._certificates, trust_env=False, timeout=_ASK_SECONDS, event_hooks={"response": [read_error]}
        )

    async def _readable(
        self, first: TextGenerationStreamOutput, events: AsyncIterator[TextGenerationStreamOutput]
    ) -> AsyncIterator[TextGenerationStreamOutput]:
        """``first`` and then ``events``; what goes wrong with them is a `ServerError`."""
        yield first
        try:
            async for event in events:
                yield event
        except _UNREADABLE as error:
            raise ServerError(f"{self.url} broke off: {_said(error)}") from error

    async def _info(self) -> dict[str, Any]:
        try:
            response = await self._http.get("/info")
            info = response.json() if response.status_code == 200 else None
        except httpx.HTTPError as error:
            raise ServerError(f"{self.url} cannot be reached: {_said(error)}") from error
        except ValueError:
            info = None
        if not isinstance(info, dict):
            raise ServerError(f"{self.url}/info answers {response.status_code} and not as TGI does")
        return info

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._address.api_key}"} if self._address.api_key else {}


def _parameters(segment: Segment) -> dict[str, Any]:
    sampling = segment.sampling
    given: dict[str, Any] = {"max_new_tokens": segment.max_tokens, "do_sample": sampling.temperature > 0}
    if segment.top:
        given["top_n_tokens"] = segment.top
    if sampling.temperature > 0:
        given["temperature"] = sampling.temperature
        if sampling.top_p < 1:
            given["top_p"] = sampling.top_p
        if sampling.top_k:
            given["top_k"] = sampling.top_k
        if sampling.seed is not None:
            given["seed"] = sampling.seed % 2**63
    if sampling.frequency_penalty:
        given["frequency_penalty"] = sampling.frequency_penalty
    if sampling.repetition_penalty != 1:
        given["repetition_penalty"] = sampling.repetition_penalty
    return given


def _step(event: TextGenerationStreamOutput) -> Step:
    top = sorted(((other.id, other.logprob) for other in event.top_tokens or ()), key=lambda pair: -pair[1])
    return Step(event.token.id, event.token.logprob, tuple(top))


def _said(error: BaseException) -> str:
    return str(error)[:300] or type(error).__name__
