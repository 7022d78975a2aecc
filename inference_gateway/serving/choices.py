"""Several completions running together, their events as one stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

from inference_gateway.backends.base import BackendBusy
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, Event, Finished, PromptScored, TextDelta, TokenLogprob, Usage
from inference_gateway.serving.metrics import GatewayMetrics
from inference_gateway.serving.planning import Plan, PlannedChoice
from inference_gateway.serving.response import Choice, Logprobs, PromptTokensDetails, ToolCall, UsageBody
from toolformer.http_api import ApiError


class GenerationError(ApiError):
    """The model failed on a completion, so the request has no whole answer."""

    def __init__(self, message: str) -> None:
        super().__init__(500, message, code="generation_failed")


class RunningChoices:
    """The completions of a plan, each in a task of its own; leaving the context stops those that still run.

    The tasks go on while nobody reads, so that a client that reads slowly holds no row of the model longer than needed.
    """

    def __init__(self, completer: Completer, plan: Plan, metrics: GatewayMetrics) -> None:
        self._completer = completer
        self._plan = plan
        self._metrics = metrics
        self._items: asyncio.Queue[tuple[int, Event] | Exception] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._run(index)) for index in range(len(self._plan.choices))]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def next(self, patience: float | None = None) -> tuple[int, Event] | None:
        """The next event and the index of its choice; ``None`` if ``patience`` seconds pass without one.

        Raises:
            ApiError: 503 if the model takes no more completions now, 500 if it failed on this one.
        """
        try:
            async with asyncio.timeout(patience):
                item = await self._items.get()
        except TimeoutError:
            return None
        match item:
            case BackendBusy():
                seconds = max(1, round(item.retry_after))
                message = f"the model is busy: {item}; try again in {seconds} s"
                raise ApiError(503, message, code="busy", headers={"Retry-After": str(seconds)}) from item
            case Exception():
                raise item
            case _, Finished(reason="error", message=message):
                raise GenerationError(message)
            case _:
                return item

    async def _run(self, index: int) -> None:
        observer = self._metrics.completion()
        try:
            async with contextlib.aclosing(self._completer.stream(self._plan.choices[index].request)) as events:
                async for event in events:
                    observer.saw(event)
                    self._items.put_nowait((index, event))
        except Exception as error:
            observer.outcome = "refused" if isinstance(error, BackendBusy) else "error"
            self._items.put_nowait(error)
        finally:
            observer.end()


@dataclass(slots=True)
class Progress:
    """What has come of choice number ``index`` of ``plan``."""

    index: int
    plan: Plan
    text: list[str] = field(default_factory=list)
    tokens: list[TokenLogprob] = field(default_factory=list)
    prompt_tokens: tuple[TokenLogprob, ...] = ()
    tool_calls: list[ToolCall] = field(default_factory=list)
    finished: Finished | None = None

    @property
    def planned(self) -> PlannedChoice:
        """What was asked for."""
        return self.plan.choices[self.index]

    @property
    def finish_reason(self) -> Literal["stop", "length"]:
        """Why it ended, of OpenAI's reasons: a limit of whatever kind cut the text off, or none did."""
        assert self.finished is not None
        return "stop" if self.finished.reason == "stop" else "length"

    @property
    def usage(self) -> Usage:
        """Token counts; before the end those of the text so far, the tokens of tools' results among them."""
        if self.finished:
            return self.finished.usage
        request = self.planned.request
        return Usage(len(request.visible_prompt_ids), len(self.tokens), hidden_tokens=request.hidden)

    @property
    def timed_out(self) -> bool:
        """Whether the limit was one of time."""
        assert self.finished is not None
        return self.finished.reason == "timeout"

    def take(self, event: Event) -> None:
        """Note what ``event`` adds."""
        match event:
            case TextDelta(text, tokens):
                self.text.append(text)
                self.tokens += tokens
            case PromptScored(tokens):
                self.prompt_tokens = tokens
            case CallFinished(record):
                self.tool_calls.append(ToolCall.of(record, shift=len(self.planned.echo)))
            case Finished():
                self.finished = event

    def logprobs(self, *, prompt: Sequence[TokenLogprob] = (), made: Sequence[TokenLogprob] = ()) -> Logprobs | None:
        """Tokens of the echoed prompt and of the text behind it, written as the client wants them, if it does."""
        writer = self.plan.logprobs
        if writer is None:
            return None
        return writer.write(prompt) + writer.write(made, shift=len(self.planned.echo))

    def choice(self) -> Choice:
        """The whole choice; its `finished` must be set."""
        return Choice(
            index=self.index,
            text=self.planned.echo + "".join(self.text),
            finish_reason=self.finish_reason,
            logprobs=self.logprobs(prompt=self.prompt_tokens, made=self.tokens),
            tool_calls=self.tool_calls,
            timed_out=self.timed_out,
            token_ids=[token.id for token in self.tokens] if self.plan.token_ids else None,
            prompt_token_ids=list(self.planned.request.visible_prompt_ids) if self.plan.token_ids else None,
        )


def total_usage(progress: Sequence[Progress], per_prompt: int) -> UsageBody:
    """Token counts over all choices; a prompt counts once, however many choices it gives."""
    usages = [choice.usage for choice in progress]
    prompts = usages[::per_prompt]
    prompt_tokens = sum(usage.prompt_tokens for usage in prompts)
    completion_tokens = sum(usage.completion_tokens for usage in usages)
    return UsageBody(
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
        prompt_tokens_details=PromptTokensDetails(cached_tokens=sum(usage.cached_tokens for usage in prompts)),
        hidden_prompt_tokens=sum(usage.hidden_tokens for usage in prompts),
        tool_tokens=sum(usage.spliced_tokens for usage in usages),
        rolled_back_tokens=sum(usage.rolled_back_tokens for usage in usages),
    )
