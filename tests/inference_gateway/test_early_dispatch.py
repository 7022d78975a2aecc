"""Pure tools are called before the arrow, and the answer is used exactly where the arrow comes."""

import asyncio
import datetime as dt
from collections.abc import Mapping
from typing import Any

import pytest

from inference_gateway.actions import CallAhead
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, CallStarted, CompletionRequest, Event, Finished, TextDelta
from inference_gateway.decoding import DecodingMachine
from tests.inference_gateway.http_harness import scripted_backend
from tests.inference_gateway.scripted_machine import END, TOOLS, ChunkTokenizer
from toolformer.tool_client import ToolResult
from toolformer.tools import ToolRegistry


def calls_ahead(text: str, *, early: bool = True) -> tuple[list[tuple[str, str]], int]:
    """The calls reported ahead for a completion that begins with ``text``, a byte a token; and how many were made."""
    tokenizer = ChunkTokenizer()
    request = CompletionRequest((1,), max_tokens=1000, tools=tuple(TOOLS), early_dispatch=early)
    machine = DecodingMachine(request, CallVocabulary.of(tokenizer, [END]), TOOLS)
    ahead, made = [], 0
    for token in tokenizer.encode(text):
        for action in machine.accept(token) if not machine.done and machine.phase.value != "paused" else []:
            if isinstance(action, CallAhead):
                ahead.append((action.call.tool, action.call.input))
            made += isinstance(action, CallStarted)
    return ahead, made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so [Calculator(24 * 17)", [("Calculator", "24 * 17")]),
        ("so [Calculator(24 * 17)  ->", [("Calculator", "24 * 17")]),
        ("so [Calculator(24 * 17", []),
        ("so [Calculator((2 + 3)", []),
        ("so [Calculator((2 + 3) * 4)", [("Calculator", "(2 + 3) * 4")]),
        ('so [QA("Who wrote (it)?")', [("QA", "Who wrote (it)?")]),
        ('so [QA("Who wrote (it)', []),
        ("so [Calendar()", [("Calendar", "")]),
        ("so [Unknown(1)", []),
        ("so (Calculator(1)", []),
    ],
)
def test_a_call_is_reported_once_its_parenthesis_closes(text: str, expected: list[tuple[str, str]]) -> None:
    assert calls_ahead(text)[0] == expected
    assert calls_ahead(text, early=False)[0] == []


def test_a_parenthesis_that_was_not_the_last_is_reported_again() -> None:
    assert calls_ahead("so [Calculator(2) * (3) ->")[0] == [("Calculator", "2"), ("Calculator", "2) * (3")]


class Tools:
    """Counts and answers calls; each takes until ``gate`` opens."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended = 0
        self.gate = asyncio.Event()

    async def call(
        self,
        name: str,
        input: str,
        *,
        date: dt.date | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        self.begun.append(input)
        try:
            await self.gate.wait()
            return ToolResult(name, input, str(eval(input)), None, 1.0, 1)  # noqa: S307 - the test's own sums
        finally:
            self.ended += 1


async def complete(
    prompt: str, tools: Tools, *, early: bool = True, pure: bool = True
) -> tuple[list[Event], list[tuple[str, str]]]:
    backend, seen = scripted_backend(), list[tuple[str, str]]()
    calculator = ToolRegistry.load(files=[], environ={}).get("Calculator").model_copy(update={"pure": pure})
    registry = ToolRegistry([calculator])
    await backend.start()
    try:
        completer = Completer(backend, registry, tools, saw_early=lambda tool, outcome: seen.append((tool, outcome)))
        ids = tuple(backend.tokenizer.encode(prompt))
        request = CompletionRequest(ids, max_tokens=60, max_calls=2, tools=("Calculator",), early_dispatch=early)
        return [event async for event in completer.stream(request)], seen
    finally:
        await backend.stop()


async def test_the_answer_is_used_where_the_arrow_comes_and_the_text_is_the_same() -> None:
    texts: list[list[Any]] = []
    for early in (False, True):
        tools = Tools()
        tools.gate.set()
        events, seen = await complete("Two:", tools, early=early)
        assert tools.begun == ["1 + 1", "2 + 2"], "no call is made twice"
        assert seen == [("Calculator", "used")] * (2 * early)
        text = "".join(event.text for event in events if isinstance(event, TextDelta))
        calls = [(event.record.input, event.record.output) for event in events if isinstance(event, CallFinished)]
        assert isinstance(events[-1], Finished)
        texts.append([text, calls, events[-1].usage.completion_tokens])
    assert texts[0] == texts[1]


async def test_an_answer_nobody_asks_for_is_thrown_away() -> None:
    tools = Tools()  # it never answers: the completion must not wait for it
    events, seen = await complete("Closed:", tools)
    assert seen == [("Calculator", "wasted")]
    await asyncio.sleep(0)
    # On a fast machine the text is over before the call's task had its first turn: then there is nothing to end.
    assert tools.begun in ([], ["1 + 2"])
    assert tools.ended == len(tools.begun), "it is aborted"
    assert isinstance(events[-1], Finished)


async def test_a_tool_that_is_not_pure_is_called_only_when_asked() -> None:
    tools = Tools()
    tools.gate.set()
    _, seen = await complete("Sum:", tools, pure=False)
    assert (tools.begun, seen) == (["24 * 17"], [])
