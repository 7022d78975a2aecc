"""The gateway's vocabulary: what a completion is asked for, and the events it gives.

Nothing here does I/O. `completion.py` turns a :class:`CompletionRequest` into a stream of events; the HTTP layer
turns those events into OpenAI's JSON or server-sent events. Exactly one :class:`Finished` ends every stream that is
not cancelled."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from toolformer.api_call import ApiCall

FinishReason = Literal["stop", "length", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen. ``temperature`` 0 is greedy; ``top_p`` in (0, 1]; ``top_k`` keeps that many most
    likely tokens (0: all); ``seed`` makes sampling repeatable. ``frequency_penalty`` is taken off a token's logit for
    each time it was made, ``presence_penalty`` once if it was; ``logit_bias`` adds to the logits of token ids.

    As vLLM defines them: ``repetition_penalty`` divides the positive logits of tokens in prompt or completion and
    multiplies the negative ones (1: none); ``min_p`` keeps tokens with at least that share of the likeliest one's
    probability; the text does not end before ``min_tokens`` are made; with ``ignore_eos`` the end-of-text token is one
    like any other; ``stop_token_ids`` end the text, outside of calls."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    repetition_penalty: float = 1.0
    min_p: float = 0.0
    min_tokens: int = 0
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError("temperature must be 0 (greedy) or more")
        if not 0 < self.top_p <= 1:
            raise ValueError("top_p must be in (0, 1]")
        if self.top_k < 0:
            raise ValueError("top_k must be 0 (all tokens) or more")
        if self.repetition_penalty <= 0:
            raise ValueError("repetition_penalty must be more than 0")

    @property
    def penalizes(self) -> bool:
        """Whether tokens are penalized that were there before."""
        return bool(self.frequency_penalty or self.presence_penalty or self.repetition_penalty != 1)

    @property
    def adjusts(self) -> bool:
        """Whether logits are changed by penalties, biases or a least number of tokens."""
        return bool(self.penalizes or self.logit_bias or self.min_tokens)

    @property
    def optional(self) -> frozenset[str]:
        """The fields in use that not every model server has."""
        return frozenset(name for name, neutral in _OPTIONAL.items() if getattr(self, name) != neutral)


_OPTIONAL: Final[Mapping[str, object]] = {"repetition_penalty": 1.0, "min_p": 0.0, "min_tokens": 0, "ignore_eos": False}

OPTIONAL_SAMPLING: Final = frozenset(_OPTIONAL)
"""Fields of :class:`SamplingParams` that not every model server has."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion of one prompt.

    ``max_tokens`` counts tokens the model makes (call text included, spliced results not); 0 is for a prompt that is
    only to be scored. ``tools`` are the names
    that may be called. ``api_top_k`` is k of section 4.2 of the paper: a call may start where an API-start token is
    among the k most likely; 1 is plain greedy, 0 disables calls. ``max_calls`` bounds executed calls (paper: 1),
    ``max_cost`` the sum of what they cost by the registry.
    ``tool_timeout`` is the deadline of one call in seconds, ``None`` for the tool's own; ``timeout`` the wall-clock
    limit of the whole completion in seconds. The text ends before the first of the ``stop`` strings or, with
    ``include_stop``, behind it; with ``stop_at`` "sentence" also at the end of the sentence. ``show_calls`` keeps the
    text of finished calls in the completion's text. ``date`` is the day that tools shall take for today. The text also
    ends where its last few tokens have come ``max_repeats`` times in a row (0: it does not).

    The first ``hidden`` of ``prompt_ids`` show the model how tools are called, and no client sees them. Since
    demonstrations show calls without results, a call that the model then ends with ``]`` is made too, and its result
    put before that.

    ``logprobs`` asks for the log probability of each shown token and of that many most likely ones at its place;
    ``prompt_logprobs`` asks the same of the prompt's tokens. ``plain`` serves the bare model: no call is looked for,
    made or banned; a gateway that is in front of this one asks for that. Every token is then emitted, the end of the
    text and one that ends inside a character too. ``early_dispatch`` calls pure tools as soon as a call's parenthesis
    closes, before ``->``."""

    prompt_ids: tuple[int, ...]
    max_tokens: int = 16
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop: tuple[str, ...] = ()
    stop_at: Literal["sentence"] | None = None
    include_stop: bool = False
    tools: tuple[str, ...] = ()
    api_top_k: int = 10
    max_calls: int = 1
    max_cost: float = math.inf
    tool_timeout: float | None = None
    timeout: float = 120.0
    show_calls: bool = True
    date: dt.date | None = None
    request_id: str = ""
    client: str = ""
    """The name of the API key, between which the engine takes turns; empty where there are none."""
    logprobs: int | None = None
    prompt_logprobs: bool = False
    plain: bool = False
    early_dispatch: bool = False
    max_repeats: int = 0
    hidden: int = 0

    @property
    def visible_prompt_ids(self) -> tuple[int, ...]:
        """The prompt as the client knows it."""
        return self.prompt_ids[self.hidden :]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token and its log probability in nats under the model's own distribution (temperature 1, nothing banned or
    biased).

    ``logprob`` is ``None`` where the model gave none: a spliced result, a prompt's first token. ``top`` lists the most
    likely ``(token id, log probability)``, best first; empty where ``logprob`` is ``None`` or none was asked for.
    ``offset`` is the character of the text at which the token starts."""

    id: int
    logprob: float | None
    top: tuple[tuple[int, float], ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """One call as reported to the client in ``tool_calls``.

    Exactly one of ``output`` and ``error`` is set. ``offset`` is where the call is (or, for a failed call,
    would have been) in the completion's text, in characters. A failed call leaves nothing in the text."""

    tool: str
    input: str
    output: str | None
    error: str | None
    """``code: message`` of what went wrong."""
    offset: int
    duration_ms: float


@dataclass(frozen=True, slots=True)
class PromptScored:
    """The prompt's tokens with their log probabilities; comes once, first, where ``prompt_logprobs`` asked for it."""

    tokens: tuple[TokenLogprob, ...]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text that will never be taken back.

    ``tokens`` are those whose text is now shown to its end, in order; over a whole completion each token that the text
    is made of comes once (one of which only a part is shown, because a stop string cut it, with the last text). Their
    log probabilities are there where ``logprobs`` asked for them."""

    text: str
    tokens: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The sequence waits at ``->`` for the result of ``call``, which would be at character ``offset`` of the text."""

    call: ApiCall
    offset: int


@dataclass(frozen=True, slots=True)
class CallFinished:
    """The answer was spliced in, or the call's tokens were rolled back (``record.error`` says why).

    A call that is taken back before it is made (it repeats one, is too long, or ended in its middle) has no
    `CallStarted`; its tool is empty if the name was not whole."""

    record: ToolCallRecord


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. ``completion_tokens``: made by the model, at most ``max_tokens``; ``spliced_tokens``: inserted from
    tools, never sampled; ``rolled_back_tokens``: made beside ``completion_tokens`` for calls that were taken back, at
    most ``max_tokens`` too; ``hidden_tokens``: hidden ones before the prompt, which ``prompt_tokens`` and
    ``cached_tokens`` leave out."""

    prompt_tokens: int
    completion_tokens: int
    spliced_tokens: int = 0
    rolled_back_tokens: int = 0
    cached_tokens: int = 0
    hidden_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The one terminal event. ``message`` explains ``error`` and ``timeout``."""

    reason: FinishReason
    usage: Usage
    message: str = ""


Event = PromptScored | TextDelta | CallStarted | CallFinished | Finished
