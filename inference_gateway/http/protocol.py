"""The JSON of ``POST /v1/completions``: OpenAI's shape, and what this gateway adds to it.

A field this gateway does not know is refused, so that a misspelt ``max_call`` cannot pass in silence. ``null`` means
the default, as OpenAI's clients take it to.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema

from inference_gateway.core import ToolCallRecord

Prompt = str | tuple[int, ...]
"""One prompt: a text, or the ids of its tokens."""

MAX_STOP_STRINGS: Final = 4
MAX_STOP_CHARACTERS: Final = 256
_FORMS: Final = "must be a string, a list of strings, a list of token ids or a list of such lists"


def _read_prompts(value: Any) -> tuple[Prompt, ...]:
    """The prompts of any of the four forms; one message says what is wrong, where a union would give one a form."""
    if isinstance(value, list) and value and not all(map(_is_token_id, value)):
        return tuple(map(_read_prompt, value))
    return (_read_prompt(value),)


def _read_prompt(value: Any) -> Prompt:
    if isinstance(value, str):
        if not value:
            raise ValueError("a prompt must not be empty: send at least one character")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("a prompt holds half of a surrogate pair; send whole characters") from None
        return value
    if isinstance(value, list):
        if not value:
            raise ValueError("a prompt must not be empty: send at least one token")
        if all(map(_is_token_id, value)):
            return tuple(value)
    raise ValueError(_FORMS)


def _is_token_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_stops(value: Any) -> tuple[str, ...]:
    stops = [] if value is None else value if isinstance(value, list) else [value]
    if len(stops) > MAX_STOP_STRINGS or not all(isinstance(stop, str) for stop in stops):
        raise ValueError(f"must be a string or a list of at most {MAX_STOP_STRINGS} strings")
    if not all(0 < len(stop) <= MAX_STOP_CHARACTERS for stop in stops):
        raise ValueError(f"a stop string must have 1 to {MAX_STOP_CHARACTERS} characters")
    return tuple(stops)


def _read_day(value: Any) -> Any:
    # pydantic alone would take numbers and times of day for days as well.
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return dt.date.fromisoformat(value)
        except ValueError:
            pass
    if value is None or type(value) is dt.date:
        return value
    raise ValueError("must be a day of the calendar as YYYY-MM-DD, such as 2026-11-20")


_PROMPT_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}},
        {"type": "array", "minItems": 1, "items": {"type": "array", "minItems": 1, "items": {"type": "integer"}}},
    ]
}
_STOP_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": MAX_STOP_CHARACTERS},
        {"type": "array", "maxItems": MAX_STOP_STRINGS, "items": {"type": "string", "minLength": 1}},
        {"type": "null"},
    ]
}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class StreamOptions(_Body):
    """How to stream."""

    include_usage: bool | None = Field(None, description="Send a last chunk with the token counts.")


class ToolContext(_Body):
    """What tools may be told beside a call's input (decision record 002)."""

    date: Annotated[dt.date | None, BeforeValidator(_read_day)] = Field(
        None, description="The day tools take for today, YYYY-MM-DD; by default each tool's own clock."
    )


class CompletionBody(_Body):
    """A request for completions."""

    prompt: Annotated[tuple[Prompt, ...], PlainValidator(_read_prompts), WithJsonSchema(_PROMPT_SCHEMA)] = Field(
        description="A text, a list of texts, a list of token ids, or a list of such lists; each gives n choices."
    )
    model: str | None = Field(None, description="The served model's name, which is also the default.")
    max_tokens: int | None = Field(
        None, ge=1, description="Tokens the model may make, call text included, tool results not; by default 16."
    )
    temperature: float | None = Field(None, ge=0, le=2, description="0 is greedy, which is the default here.")
    top_p: float | None = Field(None, gt=0, le=1, description="Sample among the tokens with this much probability.")
    seed: int | None = Field(None, ge=-(2**63), lt=2**63, description="Makes sampling repeatable.")
    stop: Annotated[tuple[str, ...], PlainValidator(_read_stops), WithJsonSchema(_STOP_SCHEMA)] = Field(
        (), description="Up to 4 strings; the text ends before the first of them."
    )
    n: int | None = Field(None, ge=1, description="Choices for each prompt; by default 1.")
    echo: bool | None = Field(None, description="Begin each text with its prompt.")
    stream: bool | None = Field(None, description="Answer in server-sent events, as the text comes.")
    stream_options: StreamOptions | None = None
    user: str | None = Field(None, description="Accepted and ignored.")

    tools: list[str] | None = Field(None, description="Names of the tools that may be called; null: all, []: none.")
    api_top_k: int | None = Field(
        None, ge=0, le=1000, description="A call may start where its token is among the k most likely; 0: no calls."
    )
    max_calls: int | None = Field(None, ge=0, le=64, description="Tool calls at most, for each choice.")
    tool_timeout: float | None = Field(
        None, gt=0, le=600, allow_inf_nan=False, description="Seconds a tool call may take; by default the tool's own."
    )
    show_calls: bool | None = Field(None, description="Whether call text stays in the text; by default true.")
    stream_tool_events: bool | None = Field(
        None, description="Whether a stream tells when a call starts and when it ends, in chunks without text."
    )
    tool_context: ToolContext | None = None

    suffix: str | None = Field(None, description="Not supported.")
    logprobs: int | None = Field(None, description="Not supported.")
    best_of: int | None = Field(None, description="Not supported, other than 1 or n.")
    logit_bias: dict[str, float] | None = Field(None, description="Not supported.")
    presence_penalty: float | None = Field(None, description="Not supported, other than 0.")
    frequency_penalty: float | None = Field(None, description="Not supported, other than 0.")

    def unsupported(self) -> str | None:
        """The first field of OpenAI's that asks for what this gateway cannot do; ``None`` if there is none."""
        asked = {
            "suffix": bool(self.suffix),
            "logprobs": self.logprobs is not None,
            "best_of": self.best_of not in (None, 1, self.n),
            "logit_bias": bool(self.logit_bias),
            "presence_penalty": bool(self.presence_penalty),
            "frequency_penalty": bool(self.frequency_penalty),
        }
        return next((name for name, is_asked in asked.items() if is_asked), None)


class ToolCall(BaseModel):
    """One tool call of a choice. Exactly one of ``output`` and ``error`` is set."""

    tool: str
    input: str
    output: str | None
    error: str | None = Field(description="`code: message`; the call is then not in the text.")
    offset: int = Field(description="The character of the choice's text where the call stands, or would have stood.")
    duration_ms: float

    @classmethod
    def of(cls, record: ToolCallRecord, *, shift: int) -> ToolCall:
        """``record`` as reported, its offset moved by the ``shift`` characters of an echoed prompt."""
        return cls(
            tool=record.tool,
            input=record.input,
            output=record.output,
            error=record.error,
            offset=record.offset + shift,
            duration_ms=round(record.duration_ms, 3),
        )


class Choice(BaseModel):
    """One completion."""

    index: int
    text: str
    finish_reason: Literal["stop", "length"]
    logprobs: None = None
    tool_calls: list[ToolCall]
    timed_out: bool = Field(description="Whether the time limit, not a token limit, is what made the reason 'length'.")


class PromptTokensDetails(BaseModel):
    """Where the prompt's tokens came from."""

    cached_tokens: int


class UsageBody(BaseModel):
    """Token counts over all choices."""

    prompt_tokens: int
    completion_tokens: int = Field(description="Made by the model, call text included.")
    total_tokens: int = Field(description="prompt_tokens + completion_tokens.")
    prompt_tokens_details: PromptTokensDetails
    tool_tokens: int = Field(description="Put in from tools' results; not in the total.")
    rolled_back_tokens: int = Field(description="The part of completion_tokens spent on calls that were taken back.")


class CompletionResponse(BaseModel):
    """The completions, the first prompt's first."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int = Field(description="Unix time, in seconds.")
    model: str
    choices: list[Choice]
    usage: UsageBody
