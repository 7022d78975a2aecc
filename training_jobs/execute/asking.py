"""Every call gets an output or a named error, and neither depends on outages.

What the service says of a call is the call's: an output, or the service's own error code. What says nothing about the
call (no connection, an open circuit, HTTP 503, a deadline that passed) is waited out: once the service is ready again
the call is asked again. A call that the service, ready all the while, does not answer in time or answers in a broken
way, and does so three times, each time alone, keeps that as its error.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from toolformer.tool_client import ErrorCode, ToolClient, ToolError, ToolResult
from toolformer.tools import Tool, ToolRegistry
from training_jobs.errors import StageError
from training_jobs.records import says
from training_jobs.runner.work import Say
from training_jobs.settings import positive, setting

UNSAID: Final = frozenset({ErrorCode.CIRCUIT_OPEN, ErrorCode.BUSY})
"""The service was not asked, or does not answer anybody now."""
DOUBTFUL: Final = frozenset(
    {ErrorCode.UNREACHABLE, ErrorCode.TIMEOUT, ErrorCode.BAD_RESPONSE, ErrorCode.TOO_LARGE, "internal"}
)
"""It may be the call, another call in its batch, or the service."""
TRIES: Final = 3
"""Times that a call goes wrong alone, with the service ready, before that is the call's own error."""
_WHILE_READY: Final = 3
"""How much a failure with the service ready right after it speaks against the call; one with the service gone counts 1:
that is most often an outage, but there are calls that end a service each time."""
MANY: Final = 8
"""Calls all answered in a broken way, and none otherwise: that is no tool service of ours."""

_LOOK_EVERY_S: Final = 1.0
_SAY_EVERY_S: Final = 15.0


@dataclass(frozen=True, slots=True)
class ExecuteSettings:
    """How services are asked; no part of the output depends on it."""

    concurrency: int = setting(4, "batches of calls under way at once", kind=positive)
    patience_s: float = setting(
        600.0, "how long to wait for a service that is away", flag="--patience", metavar="SECONDS"
    )


@dataclass(frozen=True, slots=True)
class Question:
    """A call: its input, and the date of its document."""

    input: str
    date: dt.date | None = None

    @classmethod
    def on(cls, day: str | None, input_: str) -> Self:
        """The call ``input_`` in a document of ``day`` (``YYYY-MM-DD``)."""
        return cls(input_, dt.date.fromisoformat(day) if day else None)


Outcome = str | ToolError


class Asking:
    """Asks one tool's service.

    Args:
        client: the client, on the event loop that this is used on.
        tool: the tool.
        say: reports that the service is waited for, and that it is back.
        how: how the service is asked.
        clock: seconds on a clock that never goes back.
    """

    def __init__(
        self,
        client: ToolClient,
        tool: Tool,
        say: Say,
        how: ExecuteSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._tool, self._say, self._how, self._clock = client, tool, say, how, clock
        self.asked = 0
        """Calls that the service answered, those out of the cache left out."""
        self.waited_s = 0.0
        """Seconds for which it was waited for."""

    async def ask(self, questions: Sequence[Question]) -> list[Outcome]:
        """An outcome for each question, in order; equal questions are asked once.

        Raises:
            StageError: if the service stays away for longer than the patience, or is no service of this tool.
        """
        # Only a tool that takes the date can answer another on another day.
        keys = [question if self._tool.takes_date else Question(question.input) for question in questions]
        left = list(dict.fromkeys(keys))
        doubts: Counter[Question] = Counter()
        found: dict[Question, Outcome] = {}
        while left:
            # One broken answer spoils its whole batch, so doubtful calls go alone.
            together = [question for question in left if doubts[question] < _WHILE_READY]
            outcomes = await self._together(together)
            for question in left:
                if doubts[question] >= _WHILE_READY:
                    outcomes[question] = await self._alone(question)
            ready = all(is_settled(outcome) for outcome in outcomes.values()) or bool(
                await self._client.ready(self._tool.name)
            )
            for question, outcome in outcomes.items():
                if isinstance(outcome, ToolError) and outcome.code in DOUBTFUL:
                    doubts[question] += _WHILE_READY if ready else 1
                if is_settled(outcome) or doubts[question] > TRIES * _WHILE_READY:
                    found[question] = outcome
            self._check_sense(found)
            left = [question for question in left if question not in found]
            if left:
                await self._wait_until_ready()
        return [found[key] for key in keys]

    async def _together(self, questions: Sequence[Question]) -> dict[Question, Outcome]:
        if not questions:
            return {}
        inputs, dates = [question.input for question in questions], [question.date for question in questions]
        results = await self._client.call_many(self._tool.name, inputs, dates=dates, concurrency=self._how.concurrency)
        return {question: self._outcome(result) for question, result in zip(questions, results, strict=True)}

    async def _alone(self, question: Question) -> Outcome:
        return self._outcome(await self._client.call(self._tool.name, question.input, date=question.date))

    def _outcome(self, result: ToolResult) -> Outcome:
        self.asked += result.ok and result.attempts > 0
        return result.error if result.error is not None else str(result.output)

    def _check_sense(self, found: dict[Question, Outcome]) -> None:
        broken = [one for one in found.values() if isinstance(one, ToolError) and one.code == ErrorCode.BAD_RESPONSE]
        if len(broken) >= MANY and len(broken) == len(found):
            raise StageError(f"{broken[0].message}. Correct the address of {self._tool.name}; run again to go on")

    async def _wait_until_ready(self) -> None:
        """Return once the service can answer calls."""
        began = said = self._clock()
        first = True
        while True:
            state = await self._client.ready(self._tool.name)
            if state and self._client.circuit(self._tool.name) != "open":
                self.waited_s += self._clock() - began
                if not first:
                    self._say(f"{self._tool.name} is back after {self._clock() - began:.0f} s; going on")
                return
            waited = self._clock() - began
            reason = state.reason or "its circuit is open"
            if waited >= self._how.patience_s:
                raise StageError(
                    f"{reason}; waited {waited:.0f} s for it. What was done is kept: start the service and run again"
                )
            if first or self._clock() - said >= _SAY_EVERY_S:
                self._say(f"waiting for {self._tool.name}, {self._how.patience_s - waited:.0f} s at most: {reason}")
                first, said = False, self._clock()
            await asyncio.sleep(_LOOK_EVERY_S)


def is_settled(outcome: Outcome) -> bool:
    """Whether this is what the service says of the call; else nothing is known of it."""
    return isinstance(outcome, str) or outcome.code not in UNSAID | DOUBTFUL


async def check_services(client: ToolClient, tools: Iterable[str]) -> None:
    """Ask every tool's service whether it is ready.

    Raises:
        StageError: naming the services that are not, and the remedy.
    """
    reasons = {name: state.reason for name in tools if not (state := await client.ready(name))}
    if reasons:
        listed = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        raise StageError(f"{listed}. Start the tool services first (toolformer up)")


async def ask_each(
    client: ToolClient, registry: ToolRegistry, asked: Sequence[tuple[str, Question]], how: ExecuteSettings
) -> list[Outcome]:
    """What the tools say to each question, which is behind its tool's name: an output or the service's own error. A
    service that is away is waited for as in the stage ``execute``; a call that it does not answer even alone stops the
    job, for the texts come from a generator: none is such that a sound service breaks at it, and a corpus must not
    depend on what a service did today.

    Raises:
        StageError: if a service stays away for longer than its patience, or does not answer a call.
    """
    found: dict[tuple[str, Question], Outcome] = {}
    for name in sorted({tool for tool, _ in asked}):
        questions = [question for tool, question in asked if tool == name]
        asking = Asking(client, registry.get(name), lambda line: print(line, file=sys.stderr), how)
        for question, outcome in zip(questions, await asking.ask(questions), strict=True):
            if isinstance(outcome, ToolError) and not is_settled(outcome):
                raise StageError(f"{name}({question.input}): {outcome.code}: {outcome.message}; look at its log")
            found[name, question] = outcome
    return [found[one] for one in asked]


def why_dropped(tool: str, output: str | None, answer: str) -> str | None:
    """Why a text is dropped whose generator knows the ``answer`` that ``tool`` is to give; ``None`` if it gives it."""
    if output is None:
        return f"dropped: {tool} has no answer"
    return None if says(output, answer) else f"dropped: {tool} says something else"
