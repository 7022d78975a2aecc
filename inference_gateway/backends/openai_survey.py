"""What a ``/v1/completions`` server can do, found by asking it for a few tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from inference_gateway.backends.model_server import (
    Abilities,
    RequestRefused,
    Segment,
    ServerAddress,
    ServerError,
    Step,
    check_vocabulary,
    notices_of,
)
from inference_gateway.backends.openai_wire import SAMPLING_FIELDS, Chunk, Dialect
from inference_gateway.core import SamplingParams
from language_model.tokenizer import ByteLevelTokenizer

_QUESTION: Final = "The quick brown fox jumps over"
_ANSWER_TOKENS: Final = 4


class Surveyed(Protocol):
    """What is asked of a server: its models, and tokens in a dialect. `OpenAIServer` is one."""

    url: str
    address: ServerAddress
    tokenizer: ByteLevelTokenizer
    max_top: int

    async def models(self) -> list[dict[str, Any]]: ...

    def chunks(self, segment: Segment, dialect: Dialect) -> AsyncIterator[Chunk]: ...


@dataclass(frozen=True, slots=True)
class _Sample:
    """What a server wrote after the question."""

    steps: tuple[Step, ...]
    text: str
    exact: bool


async def survey(server: Surveyed) -> tuple[Dialect, Abilities]:
    """How to speak to ``server`` and what it can do.

    Raises:
        ServerError: if it does not answer, has another vocabulary, or cannot be used.
    """
    listed = _chosen(await server.models(), server)
    dialect, sample = await _understood(server, Dialect(listed["id"], str(listed.get("owned_by", "")).lower()))
    top = 0
    for asked in [k for k in (server.max_top, 20, 10, 5, 1) if k <= server.max_top]:
        probabilities = await _ask(server, replace(dialect, needs_logprobs=True), top=asked)
        if probabilities is not None:
            counts = [len(step.top) for step in probabilities.steps]
            top = min(asked, max(counts, default=0))
            if probabilities.exact and not sample.exact:
                dialect, sample = replace(dialect, needs_logprobs=True), probabilities
            break
    if sample.exact:
        check_vocabulary(server.url, server.tokenizer, [step.id for step in sample.steps], sample.text)
    bans = await _bans(server, dialect, sample)
    return dialect, Abilities(
        model=listed["id"],
        max_model_len=_length(listed),
        top=top,
        bans=bans,
        sampling_fields=frozenset(SAMPLING_FIELDS.get(dialect.kind, ())),
        notices=notices_of(ids=dialect.ids, exact=sample.exact, top=top, bans=bans),
    )


def _chosen(listed: Sequence[dict[str, Any]], server: Surveyed) -> dict[str, Any]:
    wanted = server.address.model
    if wanted is None and not listed:
        raise ServerError(f"{server.url} lists no models; say which in TOOLFORMER_GATEWAY_BACKEND_MODEL")
    # A server may serve what it does not list (`transformers serve` does); if it does not, it will refuse.
    return next((model for model in listed if wanted in (None, model["id"])), {"id": wanted})


def _length(listed: dict[str, Any]) -> int | None:
    """Tokens of a sequence: vLLM and SGLang say it as ``max_model_len``, llama.cpp in ``meta``."""
    length = listed.get("max_model_len")
    if length is None and isinstance(meta := listed.get("meta"), dict):
        length = meta.get("n_ctx")
    return length if isinstance(length, int) and length > 0 else None


async def _understood(server: Surveyed, dialect: Dialect) -> tuple[Dialect, _Sample]:
    """The richest dialect that the server takes, and what it said in it."""
    last: RequestRefused | None = None
    for ids in (True, False):
        for id_fields, usage in ((True, True), (False, True), (False, False)):
            spoken = replace(dialect, ids=ids, id_fields=id_fields, usage=usage)
            try:
                return spoken, await _sample(server, spoken)
            except RequestRefused as refused:
                last = refused
    assert last is not None
    raise last


async def _ask(server: Surveyed, dialect: Dialect, **fields: Any) -> _Sample | None:
    """A sample, or ``None`` if the server does not take such a request."""
    try:
        return await _sample(server, dialect, **fields)
    except RequestRefused:
        return None


async def _sample(server: Surveyed, dialect: Dialect, **fields: Any) -> _Sample:
    ids = tuple(server.tokenizer.encode(_QUESTION))
    segment = Segment(ids, _ANSWER_TOKENS, SamplingParams(), **fields)
    chunks = [chunk async for chunk in server.chunks(segment, dialect)]
    return _Sample(
        steps=tuple(step for chunk in chunks for step in chunk.steps),
        text="".join(chunk.text for chunk in chunks),
        exact=all(chunk.exact for chunk in chunks if chunk.text or chunk.steps),
    )


async def _bans(server: Surveyed, dialect: Dialect, sample: _Sample) -> bool:
    """Whether the token the model likes best goes away when it is banned."""
    if not sample.steps:
        return False
    first = sample.steps[0].id
    banned = await _ask(server, dialect, banned=(first,))
    return banned is not None and bool(banned.steps) and banned.steps[0].id != first
