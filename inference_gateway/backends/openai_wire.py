"""``/v1/completions`` as vLLM, SGLang, llama.cpp and others speak it: bodies out of segments, steps out of chunks.

Pure, no I/O. What a chunk reports of its tokens differs from server to server (read from their sources, November 2026):

- vLLM and SGLang put ids in ``choices[].token_ids`` when asked with ``return_token_ids``. Their ``logprobs`` have
  OpenAI's old shape: ``tokens``, ``token_logprobs``, ``top_logprobs`` (a mapping for each place). vLLM writes tokens as
  ``token_id:685`` when asked with ``return_tokens_as_token_ids``, SGLang as text. vLLM adds the chosen token to the
  mapping where it is not among the most likely.
- llama.cpp puts ``logprobs.content[]`` there, each with ``id`` and ``top_logprobs[]``, which have ids too. A token that
  ends inside a character is not streamed; the next one brings its text.
- Others report the text alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from inference_gateway.backends.model_server import Segment, ServerError, Step
from inference_gateway.backends.server_http import message_of
from inference_gateway.core import OPTIONAL_SAMPLING
from language_model.tokenizer import ByteLevelTokenizer

UNKNOWN: Final = -1
"""The id of a token of which only a text is known that no single token has. It still counts in ranks."""

BAN: Final = -100.0
FORCE: Final = -BAN
"""The lowest and the highest ``logit_bias`` of OpenAI's API: one bans a token, the other leaves only those that have
it."""

_ID_PREFIX: Final = "token_id:"

NEUTRAL: Final[Mapping[str, Mapping[str, object]]] = {
    "vllm": {"top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
    "sglang": {"top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0},
    "llamacpp": {
        "top_k": 0,
        "min_p": 0.0,
        "repeat_penalty": 1.0,
        "samplers": ["penalties", "temperature", "min_p", "top_k", "top_p"],  # by default the temperature is last
    },
}
"""Per ``owned_by``: values that switch off what a server or a model's ``generation_config.json`` adds to sampling."""

SAMPLING_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    **{kind: {name: name for name in OPTIONAL_SAMPLING} for kind in ("vllm", "sglang", "toolformer")},
    "llamacpp": {"repetition_penalty": "repeat_penalty", "min_p": "min_p", "ignore_eos": "ignore_eos"},
}
"""Per ``owned_by``: the optional sampling fields that a server has, and what it calls them. Others may take unknown
fields without a word, so what they would do cannot be found by asking."""

_UNREPORTED: Final = 3
"""Tokens before a character's last, which llama.cpp reports only with that one. So many more are asked for, that those
before a limit are reported; a completion's own limit ends it."""

_ID_FIELDS: Final[Mapping[str, bool]] = {"return_token_ids": True, "return_tokens_as_token_ids": True}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server takes. ``kind`` is the ``owned_by`` of its model: ``vllm``, ``sglang``, ``llamacpp``,
    ``toolformer`` (a gateway like this one) or anything else."""

    model: str
    kind: str = ""
    ids: bool = True
    """Prompts of token ids."""
    id_fields: bool = True
    """``return_token_ids``, ``return_tokens_as_token_ids`` and ``add_special_tokens``."""
    usage: bool = True
    """``stream_options``."""
    needs_logprobs: bool = False
    """Whether ids are reported only beside log probabilities."""


def body_of(segment: Segment, dialect: Dialect, tokenizer: ByteLevelTokenizer) -> dict[str, Any]:
    """The JSON that asks for ``segment``."""
    sampling = segment.sampling
    body: dict[str, Any] = {
        "model": dialect.model,
        "prompt": list(segment.ids) if dialect.ids else tokenizer.decode_names(segment.ids),
        "max_tokens": segment.max_tokens,
        "temperature": sampling.temperature,
        "stream": True,
    }
    if dialect.kind == "llamacpp" and not segment.allowed:
        body["max_tokens"] += _UNREPORTED
    if dialect.usage:
        body["stream_options"] = {"include_usage": True}
    if dialect.id_fields:
        body |= _ID_FIELDS
        if not dialect.ids:
            body["add_special_tokens"] = False
    if segment.top or segment.logprobs or dialect.needs_logprobs:
        body["logprobs"] = max(segment.top, 1 if dialect.needs_logprobs else 0)
    if sampling.temperature > 0:
        body |= {**NEUTRAL.get(dialect.kind, {}), "top_p": sampling.top_p}
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        if sampling.seed is not None:
            body["seed"] = sampling.seed
    for name in ("frequency_penalty", "presence_penalty"):
        if value := getattr(sampling, name):
            body[name] = value
    names = SAMPLING_FIELDS.get(dialect.kind, {})
    body |= {names[name]: getattr(sampling, name) for name in sampling.optional if name in names}
    if sampling.min_tokens and sampling.stop_token_ids:
        # The gateway itself sees these tokens and ends the text; the server must know what not to choose before.
        body["stop_token_ids"] = list(sampling.stop_token_ids)
    bias = dict(sampling.logit_bias)
    if dialect.kind == "llamacpp" and sampling.penalizes:
        # It penalizes the last 64 tokens, those of the prompt too; for OpenAI's two penalties only what is made counts.
        body["repeat_last_n"] = len(segment.ids) + segment.max_tokens
        if sampling.frequency_penalty or sampling.presence_penalty:
            for token, times in Counter(segment.ids).items():
                bias[token] = bias.get(token, 0.0) + sampling.frequency_penalty * times + sampling.presence_penalty
    bias |= dict.fromkeys(segment.banned, BAN)
    if segment.allowed:
        bias = dict.fromkeys(segment.allowed, FORCE)
    if bias:
        body["logit_bias"] = {str(token): min(max(value, BAN), FORCE) for token, value in bias.items()}
    if dialect.kind == "toolformer":
        body["plain"] = True
    return body


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one event of a stream reported. ``exact``: the server itself said which tokens these are."""

    steps: tuple[Step, ...] = ()
    text: str = ""
    exact: bool = True
    finish_reason: str | None = None
    cached_tokens: int | None = None


class ChunkReader:
    """Reads chunks with the vocabulary of ``tokenizer``."""

    def __init__(self, tokenizer: ByteLevelTokenizer) -> None:
        self._tokenizer = tokenizer
        ids = range(tokenizer.vocab_size)
        self._by_bytes = {name: token for token in ids if (name := tokenizer.name_bytes(token))}

    def read(self, data: str) -> Chunk:
        """Take an event's data apart.

        Raises:
            ServerError: if it reports an error, or cannot be read.
        """
        try:
            event = json.loads(data)
            if "error" in event or event.get("object") == "error":
                raise ServerError(f"the model server broke off: {message_of(event)}")
            choice: Mapping[str, Any] = next(iter(event.get("choices") or ()), {})
            steps, exact = self._steps(choice)
            return Chunk(
                steps=tuple(steps),
                text=choice.get("text") or "",
                exact=exact,
                finish_reason=choice.get("finish_reason"),
                cached_tokens=_cached_tokens(event.get("usage")),
            )
        except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
            excerpt = data[:80] + ("…" if len(data) > 80 else "")
            raise ServerError(f"the model server sent what cannot be read ({error!r}): {excerpt!r}") from error

    def _steps(self, choice: Mapping[str, Any]) -> tuple[list[Step], bool]:
        logprobs = choice.get("logprobs") or {}
        content = logprobs.get("content")
        if content is not None:
            return self._from_content(content, choice.get("text") or "")
        tops = [self._likely(top) for top in logprobs.get("top_logprobs") or ()]
        own = logprobs.get("token_logprobs") or ()
        ids = choice.get("token_ids")
        if ids is None and logprobs.get("tokens"):
            ids = [self._id_of(token) for token in logprobs["tokens"]]
        if ids is None or UNKNOWN in ids:
            # Without ids nothing says which step a text belongs to, so what is likely there is not used either.
            return [Step(token) for token in self._tokenizer.encode(choice.get("text") or "")], False
        aligned = len(tops) == len(ids)
        return [
            Step(_checked(token), own[at] if at < len(own) else None, tops[at] if aligned else ())
            for at, token in enumerate(ids)
        ], True

    def _from_content(self, content: list[Any], text: str) -> tuple[list[Step], bool]:
        """The steps of llama.cpp's log probabilities."""
        steps = [
            Step(
                _checked(place["id"]),
                place.get("logprob"),
                tuple((_checked(other["id"]), float(other["logprob"])) for other in place.get("top_logprobs") or ()),
            )
            for place in content
        ]
        spelt = b"".join(self._tokenizer.token_bytes(step.id) for step in steps)
        if len(spelt) < len(text.encode()) and text.encode().endswith(spelt):
            # A character's last token brought the bytes of others, whose ids were not reported.
            return [*(Step(token) for token in self._tokenizer.encode(text)[:-1]), *steps[-1:]], False
        return steps, True

    def _likely(self, top: Mapping[str, float] | None) -> tuple[tuple[int, float], ...]:
        named = ((self._id_of(token), float(logprob)) for token, logprob in (top or {}).items())
        return tuple(sorted(named, key=lambda pair: -pair[1]))

    def _id_of(self, token: str) -> int:
        """The id of a token reported as ``token_id:685`` or as its text; `UNKNOWN` where that is no one token's."""
        if token.startswith(_ID_PREFIX) and token.removeprefix(_ID_PREFIX).isdecimal():
            return int(token.removeprefix(_ID_PREFIX))
        return self._by_bytes.get(token.encode(errors="replace"), UNKNOWN)


def _checked(token: Any) -> int:
    if isinstance(token, bool) or not isinstance(token, int) or token < 0:
        raise ValueError(f"a token id must be a number from 0, not {token!r}")
    return token


def _cached_tokens(usage: Mapping[str, Any] | None) -> int | None:
    cached = ((usage or {}).get("prompt_tokens_details") or {}).get("cached_tokens")
    return None if cached is None else int(cached)
