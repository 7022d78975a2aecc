"""The JSON of ``POST /v1/chat/completions``: OpenAI's shape around what a completion's request and answer hold."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from inference_gateway.serving.fields import Prompt
from inference_gateway.serving.protocol import MAX_LOGPROBS, CompletionBody, GenerationBody
from inference_gateway.serving.response import Choice, CompletionResponse, Logprobs, ToolCall, UsageBody, absent
from toolformer.http_api import ApiError, RequestBody, UnicodeText

MAX_MESSAGES: Final = 1_024
MAX_PARTS: Final = 256


def _read_content(value: Any) -> Any:
    if value is None:
        return ""
    if not isinstance(value, list):
        return value
    if len(value) > MAX_PARTS:
        raise ValueError(f"holds {len(value):,} parts; send at most {MAX_PARTS:,}")
    texts = []
    for part in value:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            raise ValueError('must be a string or a list of {"type": "text", "text": ...}: the model reads text only')
        texts.append(text)
    return "\n".join(texts)


_PART: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    "required": ["type", "text"],
}
_CONTENT: Final[dict[str, Any]] = {
    "anyOf": [{"type": "string"}, {"type": "array", "maxItems": MAX_PARTS, "items": _PART}, {"type": "null"}]
}

Content = Annotated[UnicodeText, BeforeValidator(_read_content), WithJsonSchema(_CONTENT)]
"""A message's text; of several parts, a line each."""

_Nothing = Annotated[list[Any], Field(max_length=0)] | None


class Message(RequestBody):
    """One message. Of an answer that a client sends back, the fields that hold nothing are taken as well."""

    model_config = ConfigDict(strict=True, frozen=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    name: str | None = Field(None, description="Accepted and ignored.")
    refusal: str | None = Field(None, description="Accepted and ignored.")
    tool_calls: _Nothing = Field(None, description="Empty: the gateway calls its tools itself.")
    annotations: _Nothing = None
    function_call: None = None
    audio: None = None


class ChatBody(GenerationBody):
    """A request for the next message of a chat."""

    messages: list[Message] = Field(
        min_length=1, max_length=MAX_MESSAGES, fail_fast=True, description="The chat so far; gives n choices."
    )
    max_completion_tokens: int | None = Field(
        None,
        ge=1,
        description="Tokens the model may make, call text included, results not; by default what its length leaves.",
    )
    max_tokens: int | None = Field(None, ge=1, description="The older name of max_completion_tokens.")
    logprobs: bool | None = Field(None, description="Give the log probability of each token.")
    top_logprobs: int | None = Field(
        None, ge=0, le=MAX_LOGPROBS, description="With that, those of that many most likely tokens at its place."
    )

    def texts(self) -> list[tuple[str, str]]:
        """Role and text of each message, the roles by the names that templates know."""
        return [("system" if one.role == "developer" else one.role, one.content) for one in self.messages]

    def own_name(self, field: str | None) -> str | None:
        """The field of this request that became ``field`` of the completion's."""
        if field == "max_tokens" and self.max_completion_tokens is not None:
            return "max_completion_tokens"
        return "messages" if field == "prompt" else field

    def completion(self, prompt: Prompt) -> CompletionBody:
        """The request for completions of ``prompt`` that asks for the same.

        Raises:
            ApiError: 422 if log probabilities of other tokens are asked for and none of the text's own.
        """
        if self.top_logprobs and not self.logprobs:
            message = "'top_logprobs' goes with 'logprobs': true; add that or leave it out"
            raise ApiError(422, message, param="top_logprobs")
        return CompletionBody.model_construct(
            **{name: getattr(self, name) for name in GenerationBody.model_fields},
            prompt=(prompt,),
            max_tokens=self.max_completion_tokens or self.max_tokens,
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
        )


class TopLogprob(BaseModel):
    """A token and its log probability."""

    token: str
    logprob: float | None = Field(description="In nats; null for a token from a tool's result.")
    bytes: list[int]

    @classmethod
    def of(cls, name: str, logprob: float | None) -> TopLogprob:
        """From the way in which completions write a token: as text, or as ``bytes:`` and ``\\xNN`` a byte."""
        code = re.fullmatch(r"bytes:(?:\\x[0-9a-f]{2})+", name)
        content = bytes.fromhex(name.removeprefix("bytes:").replace("\\x", "")) if code else name.encode()
        return cls(token=name, logprob=logprob, bytes=list(content))


class ContentLogprob(TopLogprob):
    """A token of the text, and the most likely ones at its place."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(BaseModel):
    """Tokens of a text and their log probabilities."""

    content: list[ContentLogprob]
    refusal: None = None

    @classmethod
    def of(cls, logprobs: Logprobs, top: int) -> ChatLogprobs:
        """``logprobs`` of a completion; ``top`` is how many tokens were asked for at each place."""
        content = []
        for name, its, others in zip(logprobs.tokens, logprobs.token_logprobs, logprobs.top_logprobs, strict=True):
            best = sorted((others or {}).items(), key=lambda one: -one[1])[:top]
            tops = [TopLogprob.of(*one) for one in best]
            content.append(ContentLogprob(**TopLogprob.of(name, its).model_dump(), top_logprobs=tops))
        return cls(content=content)


class ChatMessage(BaseModel):
    """The answer's text."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    """One answer."""

    index: int
    message: ChatMessage
    finish_reason: Literal["stop", "length"]
    logprobs: ChatLogprobs | None
    tool_calls: list[ToolCall] = Field(description="Calls that the gateway made; a client has nothing to do.")
    timed_out: bool = Field(description="Whether the time limit, not a token limit, is what made the reason 'length'.")
    token_ids: list[int] | None = Field(None, exclude_if=absent, description="There with `return_token_ids`.")
    prompt_token_ids: list[int] | None = Field(None, exclude_if=absent, description="There with `return_token_ids`.")

    @classmethod
    def of(cls, choice: Choice, top: int) -> ChatChoice:
        """``choice`` in the form of a chat."""
        return cls(
            message=ChatMessage(content=choice.text),
            logprobs=choice.logprobs and ChatLogprobs.of(choice.logprobs, top),
            **choice.model_dump(exclude={"text", "logprobs"}),
        )


class ChatResponse(BaseModel):
    """The next message, ``n`` times."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(description="Unix time, in seconds.")
    model: str
    choices: list[ChatChoice]
    usage: UsageBody

    @classmethod
    def of(cls, response: CompletionResponse, top: int) -> ChatResponse:
        """``response`` in the form of a chat; ``top`` as in `ChatLogprobs.of`."""
        choices = [ChatChoice.of(choice, top) for choice in response.choices]
        return cls(
            id=response.id, created=response.created, model=response.model, choices=choices, usage=response.usage
        )
