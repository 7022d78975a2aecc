"""A text-generation-inference server.

TGI takes text, not token ids: it encodes what was generated again with each segment, so its ids can differ from those
the gateway holds. It streams the ids of its tokens, and with ``top_n_tokens`` the most likely ones (5 unless it was
started with another ``--max-top-n-tokens``). It has no ``logit_bias``. It is archived upstream; prefer ``openai``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, Final

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
from inference_gateway.backends.server_http import Pauses, ServerHttp, message_of
from inference_gateway.core import SamplingParams
from language_model.tokenizer import ByteLevelTokenizer

_QUESTION: Final = "The quick brown fox jumps over"
_ANSWER_TOKENS: Final = 4


class _Overloaded(ServerError):  # noqa: N818 - a state, not a fault
    """The server takes no more requests now."""


_FAILURES: Final = {"validation": RequestRefused, "overloaded": _Overloaded}
"""By the type that an error in a stream has."""


class TGIServer:
    """See :class:`~inference_gateway.backends.model_server.ModelServer`. ``max_top``: most likely tokens to ask for at
    most."""

    def __init__(self, address: ServerAddress, tokenizer: ByteLevelTokenizer, max_top: int = 20) -> None:
        self.url = address.url.rstrip("/")
        self._tokenizer = tokenizer
        self._max_top = max_top
        self._http = ServerHttp(self.url, address)

    async def survey(self) -> Abilities:
        info = await self._info()
        segment = Segment(tuple(self._tokenizer.encode(_QUESTION)), _ANSWER_TOKENS, SamplingParams())
        top, events = 0, []
        for asked in [*(k for k in (self._max_top, 20, 10, 5, 1) if k <= self._max_top), 0]:
            with contextlib.suppress(RequestRefused):
                events = [event async for event in self._events(replace(segment, top=asked))]
                top = min(asked, max(len(event.get("top_tokens") or ()) for event in events))
                break
        made = [event["token"] for event in events if not event["token"].get("special")]
        check_vocabulary(self.url, self._tokenizer, [one["id"] for one in made], "".join(one["text"] for one in made))
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
        async with contextlib.aclosing(self._events(segment)) as events:
            async for event in events:
                reason = (event.get("details") or {}).get("finish_reason", reason)
                yield _step(event)
        if not reason:
            raise ServerError(f"{self.url} ended a stream without saying why")
        yield SegmentEnd("length" if reason == "length" else "stop")

    async def _events(self, segment: Segment) -> AsyncGenerator[dict[str, Any], None]:
        """The events of ``segment``, each with its token; at least one. Tried again only where nothing had begun."""
        body = {
            "inputs": self._tokenizer.decode_names(segment.ids),
            "parameters": _parameters(segment),
            "stream": True,
        }
        pauses = Pauses()
        while True:
            begun = False
            try:
                async with contextlib.aclosing(self._http.events("/", body)) as events:
                    async for data in events:
                        event = self._read(data)
                        begun = True
                        yield event
            except _Overloaded:
                if begun or not await pauses.wait():
                    raise
            else:
                if not begun:
                    raise ServerError(f"{self.url} ended a stream without a token")
                return

    def _read(self, data: str) -> dict[str, Any]:
        try:
            event: dict[str, Any] = json.loads(data)
            if "error" not in event:
                _step(event)
                return event
            failure = _FAILURES.get(event.get("error_type", ""), ServerError)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise ServerError(f"{self.url} sent what cannot be read ({error!r}): {data[:80]!r}") from error
        raise failure(f"{self.url} broke off: {message_of(event)}")

    async def _info(self) -> dict[str, Any]:
        info = await self._http.get("/info")
        if not isinstance(info, dict):
            raise ServerError(f"{self.url}/info does not answer as TGI does")
        return info


def _parameters(segment: Segment) -> dict[str, Any]:
    sampling = segment.sampling
    given: dict[str, Any] = {
        "details": True,
        "max_new_tokens": segment.max_tokens,
        "do_sample": sampling.temperature > 0,
    }
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


def _step(event: dict[str, Any]) -> Step:
    token = event["token"]
    top = sorted(
        ((int(other["id"]), float(other["logprob"])) for other in event.get("top_tokens") or ()),
        key=lambda pair: -pair[1],
    )
    return Step(int(token["id"]), token.get("logprob"), tuple(top))
