"""The chunks of a streamed answer. OpenAI's client reads each as a completion and keeps the fields it does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from inference_gateway.core import (
    CallFinished,
    CallStarted,
    Event,
    Finished,
    PromptScored,
    TextDelta,
    TokenLogprob,
)
from inference_gateway.http import event_stream
from inference_gateway.serving.choices import Progress, total_usage
from inference_gateway.serving.planning import Plan
from inference_gateway.serving.response import ToolCall
from toolformer.api_call import ApiCall

UsageWanted = Literal["never", "last", "always"]
"""Which chunks of a stream have the token counts."""


class Chunks:
    """Writes the events of one request's ``choices``; ``usage`` and ``tool_events`` say what the client asked for,
    ``usage`` "always" that every chunk has the counts so far."""

    object = "text_completion"

    def __init__(
        self,
        plan: Plan,
        choices: Sequence[Progress],
        *,
        id: str,
        created: int,
        usage: UsageWanted,
        tool_events: bool,
    ) -> None:
        self._head = {"id": id, "object": self.object, "created": created, "model": plan.model}
        self._plan = plan
        self._choices = choices
        self._usage = usage
        self._tool_events = tool_events
        self._begun: set[int] = set()
        self._echoed: set[int] = set()

    def begin(self) -> bytes:
        """The echoed prompts, but those that are to be scored: they come with their scores."""
        return b"".join(self._echo(choice) for choice in self._choices if not choice.planned.request.prompt_logprobs)

    def of(self, choice: Progress, event: Event) -> bytes:
        """The chunks that report ``event``, which ``choice`` has taken; empty if the client did not ask for it."""
        if isinstance(event, PromptScored):
            return self._echo(choice, event.tokens)
        return self._echo(choice) + self._of(choice, event)

    def usage(self) -> bytes:
        """The last chunk, which has no choice."""
        return event_stream.data({**self._head, "choices": [], "usage": self._counts()})

    def form(self, choice: Progress, fields: Mapping[str, Any], *, first: bool) -> Mapping[str, Any]:
        """A chunk's ``choice`` as the API writes it, the ``first`` or a later one."""
        return fields

    def _counts(self) -> dict[str, Any]:
        return total_usage(self._choices, self._plan.per_prompt).model_dump()

    def _of(self, choice: Progress, event: Event) -> bytes:
        match event:
            case TextDelta(text, tokens):
                return self._text(choice, text, tokens)
            case CallStarted(ApiCall(tool, input), offset) if self._tool_events:
                started = {"tool": tool, "input": input, "offset": offset + len(choice.planned.echo)}
                return self._chunk(choice, tool_event={"type": "call_started", **started})
            case CallFinished(record) if self._tool_events:
                call = ToolCall.of(record, shift=len(choice.planned.echo))
                return self._chunk(choice, tool_event={"type": "call_finished", **call.model_dump()})
            case Finished():
                calls = [call.model_dump() for call in choice.tool_calls]
                ended = {"finish_reason": choice.finish_reason, "tool_calls": calls, "timed_out": choice.timed_out}
                return self._chunk(choice, **ended)
            case _:
                return b""

    def _echo(self, choice: Progress, tokens: Sequence[TokenLogprob] = ()) -> bytes:
        """The prompt, once."""
        if choice.index in self._echoed or not choice.planned.echo:
            return b""
        self._echoed.add(choice.index)
        logprobs = choice.logprobs(prompt=tokens) if tokens else None
        return self._chunk(choice, text=choice.planned.echo, logprobs=logprobs and logprobs.model_dump())

    def _text(self, choice: Progress, text: str, tokens: Sequence[TokenLogprob]) -> bytes:
        fields: dict[str, Any] = {"text": text}
        if logprobs := choice.logprobs(made=tokens):
            fields["logprobs"] = logprobs.model_dump()
        if self._plan.token_ids:
            fields["token_ids"] = [token.id for token in tokens]
        return self._chunk(choice, **fields)

    def _chunk(self, choice: Progress, **fields: Any) -> bytes:
        body = {"index": choice.index, "text": "", "logprobs": None, "finish_reason": None, **fields}
        first = choice.index not in self._begun
        self._begun.add(choice.index)
        if self._plan.token_ids:
            body.setdefault("token_ids", [])
            if first:
                body["prompt_token_ids"] = choice.planned.request.visible_prompt_ids
        # Where usage is asked for, OpenAI's every chunk has the field, null in all but the last.
        tail = {} if self._usage == "never" else {"usage": self._counts() if self._usage == "always" else None}
        return event_stream.data({**self._head, "choices": [self.form(choice, body, first=first)], **tail})
