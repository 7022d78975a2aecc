"""The JSON of a request to ``POST /v1/completions``: OpenAI's shape, and what this gateway adds to it.

A field this gateway does not know is refused, so that a misspelt ``max_call`` cannot pass in silence; of those known
from other servers, a value that changes nothing is taken (``other_fields.py``). ``null`` means the default, as OpenAI's
clients take it to. What the answer looks like is in ``response.py``.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from inference_gateway.serving.fields import (
    MAX_STOP_TOKENS,
    MAX_TOOLS,
    LogitBias,
    Prompts,
    Stops,
    refuse_functions,
)
from inference_gateway.serving.other_fields import without_others
from toolformer.http_api import RequestBody
from toolformer.http_api.day import Day

MAX_LOGPROBS: Final = 20
"""Most likely tokens that a request may ask for at each place."""


class _Body(RequestBody):
    model_config = ConfigDict(strict=True, frozen=True)


class StreamOptions(_Body):
    """How to stream."""

    include_usage: bool | None = Field(None, description="Send a last chunk with the token counts.")
    continuous_usage_stats: bool | None = Field(
        None, description="With that, give every chunk the counts so far; a token counts once its text is sent."
    )
    include_obfuscation: bool | None = Field(None, description="Accepted and ignored: nothing is obfuscated.")


class ToolContext(_Body):
    """What tools may get beside a call's input (decision record 002)."""

    date: Day | None = Field(
        None, description="The day tools take for today, YYYY-MM-DD; by default each tool's own clock."
    )


class GenerationBody(_Body):
    """What a request for completions and one for a chat's answer both may ask for."""

    model: str | None = Field(None, description="The served model's name, which is also the default.")
    temperature: float | None = Field(None, ge=0, le=2, description="0 is greedy, which is the default here.")
    top_p: float | None = Field(None, gt=0, le=1, description="Sample among the tokens with this much probability.")
    presence_penalty: float | None = Field(
        None, ge=-2, le=2, description="Taken off the logit of each token that the completion has already."
    )
    frequency_penalty: float | None = Field(
        None, ge=-2, le=2, description="Taken off a token's logit for each time that the completion has it already."
    )
    logit_bias: LogitBias = Field((), description="What is added to the logits of tokens, by their ids as strings.")
    seed: int | None = Field(None, ge=-(2**63), lt=2**63, description="Makes sampling repeatable.")
    stop: Stops = Field((), description="Up to 4 strings; the text ends before the first of them.")
    n: int | None = Field(None, ge=1, description="Choices for each prompt; by default 1.")
    stream: bool | None = Field(None, description="Answer in server-sent events, as the text comes.")
    stream_options: StreamOptions | None = None

    # vLLM's names, for clients of its completions.
    top_k: int | None = Field(
        None, ge=-1, lt=2**31, description="Sample among that many most likely tokens; 0 or -1: all."
    )
    min_p: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Sample among the tokens with at least this share of the likeliest one's probability.",
    )
    repetition_penalty: float | None = Field(
        None,
        ge=0.01,
        le=100,
        description="Divides the logits above 0 of tokens that prompt or completion have, and multiplies those below.",
    )
    min_tokens: int | None = Field(
        None, ge=0, description="Tokens to make before the text may end, counted as max_tokens does."
    )
    ignore_eos: bool | None = Field(None, description="Go on behind the token that ends a text.")
    stop_token_ids: list[int] | None = Field(
        None,
        max_length=MAX_STOP_TOKENS,
        fail_fast=True,
        description="Tokens that end the text; one inside a call does not.",
    )
    include_stop_str_in_output: bool | None = Field(
        None, description="End the text behind the stop string or stop token instead."
    )
    return_token_ids: bool | None = Field(
        None, description="Give each choice the ids of its tokens, and of its prompt's."
    )
    return_tokens_as_token_ids: bool | None = Field(
        None, description="Write tokens in logprobs as token_id:<id>, which no two tokens share."
    )

    stop_at: Literal["sentence"] | None = Field(None, description="End the text where its first sentence ends.")
    tools: list[str] | None = Field(
        None,
        max_length=MAX_TOOLS,
        fail_fast=True,
        description="Names of the tools that may be called; null: all, []: none.",
    )
    api_top_k: int | None = Field(
        None, ge=0, le=1000, description="A call may start where its token is among the k most likely; 0: no calls."
    )
    max_calls: int | None = Field(None, ge=0, le=64, description="Tool calls at most, for each choice.")
    max_cost: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="What a choice's calls may cost in all; by default anything."
    )
    tool_prompting: bool | None = Field(
        None, description="Show the model, unseen before the prompt, how the tools are called; for one never taught."
    )
    tool_timeout: float | None = Field(
        None, gt=0, le=600, allow_inf_nan=False, description="Seconds a tool call may take; by default the tool's own."
    )
    show_calls: bool | None = Field(None, description="Whether call text stays in the text; by default true.")
    stream_tool_events: bool | None = Field(
        None, description="Whether a stream tells when a call starts and when it ends, in chunks without text."
    )
    tool_context: ToolContext | None = None
    plain: bool | None = Field(
        None, description="The bare model: calls are neither looked for nor banned. For a gateway in front of this one."
    )

    @model_validator(mode="before")
    @classmethod
    def _without_others(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        # OpenAI's word for a request in which nothing is to be called.
        no_tools: dict[str, Any] = {"tools": []} if value.get("tool_choice") == "none" else {}
        return {**without_others(value, cls.model_fields), **no_tools}

    @field_validator("tools", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return refuse_functions(value)

    def misplaced(self) -> tuple[str, str] | None:
        """The first field that makes no sense with the others, and what to do; ``None`` if there is none."""
        if self.stream_options and not self.stream:
            return "stream_options", "goes with 'stream': true; add that or leave it out"
        options = self.stream_options
        if options and options.continuous_usage_stats and not options.include_usage:
            return "stream_options.continuous_usage_stats", "goes with 'include_usage': true; add that or leave it out"
        if self.stream_tool_events and not self.stream:
            return "stream_tool_events", "goes with 'stream': true; add that or leave it out"
        if self.plain and (self.tools or self.tool_prompting):
            field = "tools" if self.tools else "tool_prompting"
            return field, "cannot go with 'plain': true, which serves the bare model; leave one of them out"
        return None


class CompletionBody(GenerationBody):
    """A request for completions."""

    prompt: Prompts = Field(
        description="A text, a list of texts, a list of token ids, or a list of such lists; each gives n choices."
    )
    max_tokens: int | None = Field(
        None,
        ge=0,
        description="Tokens the model may make, call text included, tool results not; by default 16. 0 goes with echo.",
    )
    echo: bool | None = Field(None, description="Begin each text with its prompt.")
    logprobs: int | None = Field(
        None,
        ge=0,
        le=MAX_LOGPROBS,
        description="Give the log probability of each token, and of that many most likely ones at its place.",
    )

    def misplaced(self) -> tuple[str, str] | None:
        """See the base class."""
        if self.max_tokens == 0 and not self.echo:
            return "max_tokens", "may be 0 with 'echo': true only; add that or ask for at least 1"
        return super().misplaced()
