"""The JSON of an answer to ``POST /v1/completions``: OpenAI's shape, and what this gateway adds to it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from inference_gateway.core import ToolCallRecord


def absent(value: object) -> bool:
    """Whether a field is left out of the answer."""
    return value is None


class ToolCall(BaseModel):
    """One tool call of a choice. Exactly one of ``output`` and ``error`` is set."""

    tool: str
    input: str
    output: str | None
    error: str | None = Field(description="`code: message`; the call is then not in the text.")
    offset: int = Field(description="The character of the choice's text where the call is, or would have been.")
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


class Logprobs(BaseModel):
    """Tokens of a text and their log probabilities; the lists are of one length, an element a token."""

    tokens: list[str] = Field(description="A token that is no whole character is written `bytes:` and `\\xNN` a byte.")
    token_logprobs: list[float | None] = Field(
        description="In nats; null for a token from a tool's result and for an echoed prompt's first."
    )
    top_logprobs: list[dict[str, float] | None] = Field(
        description="The most likely tokens at this place and, if it is not among them, the token itself."
    )
    text_offset: list[int] = Field(description="The character of the choice's text at which the token begins.")

    def __add__(self, other: Logprobs) -> Logprobs:
        return Logprobs(**{name: getattr(self, name) + getattr(other, name) for name in Logprobs.model_fields})


class Choice(BaseModel):
    """One completion."""

    index: int
    text: str
    finish_reason: Literal["stop", "length"]
    logprobs: Logprobs | None
    tool_calls: list[ToolCall]
    timed_out: bool = Field(description="Whether the time limit, not a token limit, is what made the reason 'length'.")
    token_ids: list[int] | None = Field(None, exclude_if=absent, description="There with `return_token_ids`.")
    prompt_token_ids: list[int] | None = Field(None, exclude_if=absent, description="There with `return_token_ids`.")


class PromptTokensDetails(BaseModel):
    """Where the prompt's tokens came from."""

    cached_tokens: int = Field(description="Not computed for this request: an earlier one began the same.")


class UsageBody(BaseModel):
    """Token counts over all choices."""

    prompt_tokens: int
    completion_tokens: int = Field(description="Made by the model, call text included; at most max_tokens a choice.")
    total_tokens: int = Field(description="prompt_tokens + completion_tokens.")
    prompt_tokens_details: PromptTokensDetails
    hidden_prompt_tokens: int = Field(
        description="Demonstrations of tools before the prompts, with `tool_prompting`; not in the total."
    )
    tool_tokens: int = Field(description="Put in from tools' results; not in the total.")
    rolled_back_tokens: int = Field(description="Made besides, for calls that were taken back; not in the total.")


class CompletionResponse(BaseModel):
    """The completions, the first prompt's first."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int = Field(description="Unix time, in seconds.")
    model: str
    choices: list[Choice]
    usage: UsageBody
