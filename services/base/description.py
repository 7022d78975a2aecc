"""The JSON of ``GET /tool``: what a service says of its tool and of its limits, ready or not."""

from __future__ import annotations

from pydantic import BaseModel, Field

from services.base.engine import ServiceInfo


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
