"""What the ways are asked for, tools that answer, and what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.pausing.ways import Way, everybodys_seconds
from benchmarks.reports import percentiles
from demo_world.suites import items
from inference_gateway.completion import Completer, ToolCaller
from inference_gateway.core import CallFinished, CompletionRequest, Finished, TextDelta
from language_model.tokenizer import ByteLevelTokenizer
from services.calculator.engine import CalculatorError, calculate
from toolformer.tool_client import ToolResult
from toolformer.tool_wire import ToolError
from toolformer.tools import ToolRegistry

PATIENCE: Final = 600.0
"""Seconds that a completion may take: speed is what is measured."""


@dataclass(frozen=True, slots=True)
class SlowTools:
    """Calculator and calendar, each answering after ``seconds``; all other tools fail."""

    seconds: float = 0.0

    async def call(
        self,
        name: str,
        input: str,
        *,
        date: dt.date | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the client's signature
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        await asyncio.sleep(self.seconds)
        output = None
        if name == "Calendar":
            output = "Today is Monday, November 23, 2026."
        elif name == "Calculator":
            with contextlib.suppress(CalculatorError):
                output = calculate(input)
        error = None if output is not None else ToolError("unavailable", "no answer")
        return ToolResult(name, input, output, error, 0.0, 1)


@dataclass(frozen=True, slots=True)
class Ask:
    """A prompt, and fields of its request."""

    ids: tuple[int, ...]
    fields: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of an `Ask`, and after how many seconds."""

    seconds: float
    text: str
    calls: tuple[tuple[str, str, str | None], ...]
    end: Finished
    top: tuple[tuple[int, tuple[tuple[int, float], ...]], ...] = ()
    """The tokens with the most likely ones at their places, where the request asked for these."""

    @property
    def outcome(self) -> tuple[object, ...]:
        """What must be the same in all ways."""
        return self.text, self.calls, self.end.reason

    def called_well(self) -> bool:
        """Whether it called a tool, and no call failed."""
        return bool(self.calls) and all(output is not None for *_, output in self.calls)


def demo_asks(suite: str, count: int, tokenizer: ByteLevelTokenizer, **fields: Any) -> list[Ask]:
    """``count`` beginnings of texts of the demo world."""
    drawn = [item for part in items(suite, count=-(-count // 2)).values() for item in part]
    texts = [f"{item.context} {item.bare}".strip() for item in drawn[:count]]
    return [Ask(tuple(tokenizer.encode(text)), {"max_tokens": 48} | fields) for text in texts]


async def complete(completer: Completer, ask: Ask) -> Done:
    """Ask, and read to the end."""
    began = time.perf_counter()
    wanted: dict[str, Any] = {"tools": tuple(completer.registry.names()), "timeout": PATIENCE} | ask.fields
    text, end = "", None
    calls: list[tuple[str, str, str | None]] = []
    top: list[tuple[int, tuple[tuple[int, float], ...]]] = []
    async for event in completer.stream(CompletionRequest(ask.ids, **wanted)):
        match event:
            case TextDelta(text=more, tokens=tokens):
                text += more
                top += [(token.id, token.top) for token in tokens]
            case CallFinished(record):
                calls.append((record.tool, record.input, record.output))
            case Finished():
                end = event
    assert end is not None
    return Done(time.perf_counter() - began, text, tuple(calls), end, tuple(top))


def completer_of(way: Way, tools: ToolCaller) -> Completer:
    """A completer on ``way``."""
    return Completer(way.backend, ToolRegistry.load(files=[], environ={}), tools)


async def measure(
    way: Way, asks: Sequence[Ask], at_once: int, tool_seconds: float, spread: float = 0.0
) -> tuple[dict[str, Any], list[Done]]:
    """Figures of one round, and what came of each. The clients come within ``spread`` seconds, one after the other."""
    completer, gate = completer_of(way, SlowTools(tool_seconds)), asyncio.Semaphore(at_once)

    async def one(place: int, ask: Ask) -> Done:
        async with gate:
            if place < at_once:
                await asyncio.sleep(spread * place / at_once)
            return await complete(completer, ask)

    way.times.clear()
    stats, prefilled, used = way.backend.stats(), await way.prefilled(), everybodys_seconds()
    began = time.perf_counter()
    done = await asyncio.gather(*(one(place, ask) for place, ask in enumerate(asks)))
    seconds, used = time.perf_counter() - began, everybodys_seconds() - used
    calls = [output for made in done for _, _, output in made.calls]
    again: float = way.backend.stats().recomputed_tokens - stats.recomputed_tokens
    if prefilled is not None:
        # A result comes behind the arrow, which was chosen but not computed yet.
        answered = sum(output is not None for output in calls)
        needed = sum(len(ask.ids) for ask in asks) + sum(made.end.usage.spliced_tokens for made in done) + answered
        again = (await way.prefilled() or 0) - prefilled - needed
    resumed, steps = ([one for times in way.times for one in getattr(times, kind)] for kind in ("resumed", "between"))
    figures: dict[str, Any] = {
        "seconds": round(seconds, 2),
        "completions_per_second": round(len(asks) / seconds, 2),
        "completion_ms": percentiles([made.seconds for made in done]),
        "calls": len(calls),
        "failed_calls": calls.count(None),
        "prefilled_again": again,
        "prefilled_again_a_call": round(again / max(1, len(calls)), 1),
        "processor_seconds_a_completion": round(used / len(asks), 3),
    }
    if resumed:
        figures["resume_ms"] = percentiles(resumed)
        figures["resume_in_steps"] = round(statistics.median(resumed) / statistics.median(steps), 2)
    return figures, done
