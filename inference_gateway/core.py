"""The gateway's vocabulary: what a completion is asked for, and the events it gives.

Nothing here does I/O. `completion.py` turns a :class:`CompletionRequest` into a stream of events; the HTTP layer
turns those events into OpenAI's JSON or server-sent events. Exactly one :class:`Finished` ends every stream that is
not cancelled."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Literal

FinishReason = Literal["stop", "length", "timeout", "error"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen. ``temperature`` 0 is greedy; ``top_p`` in (0, 1]; ``seed`` makes sampling
    repeatable."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError("temperature must be 0 (greedy) or more")
        if not 0 < self.top_p <= 1:
            raise ValueError("top_p must be in (0, 1]")


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One completion of one prompt.

    ``max_tokens`` counts tokens the model makes (call text included, spliced results not). ``tools`` are the names
    that may be called. ``api_top_k`` is k of section 4.2 of the paper: a call may start where an API-start token is
    among the k most likely; 1 is plain greedy, 0 disables calls. ``max_calls`` bounds executed calls (paper: 1).
    ``tool_timeout`` is the deadline of one call in seconds, ``None`` for the tool's own; ``timeout`` the wall-clock
    limit of the whole completion in seconds. ``show_calls`` keeps the text of finished calls in the completion's
    text. ``date`` is the day that tools shall take for today."""

    prompt_ids: tuple[int, ...]
    max_tokens: int = 16
    sampling: SamplingParams = field(default_factory=SamplingParams)
    stop: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    api_top_k: int = 10
    max_calls: int = 1
    tool_timeout: float | None = None
    timeout: float = 120.0
    show_calls: bool = True
    date: dt.date | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """One call as reported to the client (DESIGN: ``tool_calls``).

    Exactly one of ``output`` and ``error`` is set. ``offset`` is where the call stands (or, for a failed call,
    would have stood) in the completion's text, in characters. A failed call leaves nothing in the text."""

    tool: str
    input: str
    output: str | None
    error: str | None
    """``code: message`` of what went wrong."""
    offset: int
    duration_ms: float


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text that will never be taken back."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The sequence pauses at ``->``; the tool is being called."""

    tool: str
    input: str
    offset: int


@dataclass(frozen=True, slots=True)
class CallFinished:
    """The answer was spliced in, or the call's tokens were rolled back (``record.error`` says why)."""

    record: ToolCallRecord


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts. ``completion_tokens``: made by the model; ``spliced_tokens``: inserted from tools, never sampled;
    ``rolled_back_tokens``: the part of ``completion_tokens`` that belonged to calls taken back."""

    prompt_tokens: int
    completion_tokens: int
    spliced_tokens: int = 0
    rolled_back_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The one terminal event. ``message`` explains ``error`` and ``timeout``."""

    reason: FinishReason
    usage: Usage
    message: str = ""


Event = TextDelta | CallStarted | CallFinished | Finished
