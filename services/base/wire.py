"""The JSON of ``POST /call`` and ``POST /calls``, and the header beside it.

Unknown fields are refused: no misspelt one passes in silence.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, FailFast, Field

from services.base.engine import MAX_BATCH, Call, ServiceInfo
from toolformer.http_api import ApiError, RequestBody, UnicodeText
from toolformer.http_api.day import Day

VERSION_HEADER: Final = "Tool-Version"
"""On answers to calls and of ``GET /ready``: what outputs depend on besides the call, so that clients can keep them."""


class CallContext(RequestBody):
    """What the caller knows and a tool may need."""

    date: Day | None = Field(None, description="The day to take for today; by default the tool's own clock.")


class CallRequest(RequestBody):
    """One tool call."""

    input: UnicodeText = Field(description="The call's input: what is between the parentheses of a call in text.")
    context: CallContext | None = None

    def as_call(self) -> Call:
        """The call as an engine sees it."""
        return Call(self.input, self.context.date if self.context else None)


def batch_too_large(calls: int, most: int) -> ApiError:
    """The refusal of a batch of so many calls."""
    message = f"'calls' holds {calls:,} calls; send at most {most:,} at a time"
    return ApiError(422, message, param="calls", code="batch_too_large")


def _not_too_many(calls: Any) -> Any:
    if isinstance(calls, list) and len(calls) > MAX_BATCH:
        raise batch_too_large(len(calls), MAX_BATCH)
    return calls


class BatchRequest(RequestBody):
    """Several calls, answered together."""

    calls: Annotated[list[CallRequest], FailFast(), BeforeValidator(_not_too_many)] = Field(
        description="The calls; their answers come in the same order."
    )


class CallError(BaseModel):
    """Why a tool has no answer."""

    code: str = Field(description="A stable word for programs, such as `input_too_long`.")
    message: str = Field(description="The reason in words.")


class CallResponse(BaseModel):
    """One tool call's answer: an output, or null and the reason."""

    tool: str
    input: str
    output: str | None
    error: CallError | None
    duration_ms: float = Field(description="Milliseconds the engine took; for a batch, for the whole batch.")


class BatchResponse(BaseModel):
    """The answers to a batch, in the order of its calls."""

    calls: list[CallResponse]


class Limits(BaseModel):
    """What a caller must keep to, and what happens otherwise."""

    max_input_chars: int = Field(description="Unicode characters of one input; more: the error `input_too_long`.")
    max_batch: int = Field(description="Calls in one `POST /calls`; more: 422, `batch_too_large`.")
    max_in_flight: int = Field(
        description="Calls waiting or being answered, over all requests; more: 503 with `Retry-After`, `busy`."
    )
    max_body_bytes: int = Field(description="Bytes of one request body; more: 413, `body_too_large`.")
    answer_seconds: float = Field(description="Deadline for an answer; later: the error `timeout`.")


class ToolDescription(BaseModel):
    """A tool, for programs that choose tools and keep to their limits."""

    name: str = Field(description="The tool's name in text.")
    title: str
    description: str
    version: str
    input: str = Field(description="What an input is.")
    takes_context: bool = Field(description="Whether the day in a call's context counts.")
    limits: Limits

    @classmethod
    def of(cls, info: ServiceInfo) -> ToolDescription:
        """What ``info`` says."""
        return cls(
            name=info.tool,
            title=info.title,
            description=info.description,
            version=info.version,
            input=info.input_description,
            takes_context=info.takes_context,
            limits=Limits.model_validate(info, from_attributes=True),
        )
