"""One behaviour on every backend: the same model behind the local engine and behind each kind of server gives the same
text, token ids, calls and counts."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any, Final

import pytest

from inference_gateway.completion import Completer
from services.calculator.app import build_app as calculator
from tests.inference_gateway.backend_harness import NO_CIRCUIT, SERVERS, remote, started, tell
from tests.inference_gateway.http_harness import serving, tools_at
from toolformer.tool_client import ToolClient

CASES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "a call": ("Sum:", {}),
    "a call that is hidden": ("Sum:", {"show_calls": False}),
    "two calls": ("Two:", {}),
    "no second call": ("Two:", {"max_calls": 1}),
    "calls banned": ("Sum:", {"api_top_k": 0}),
    "no tools": ("Sum:", {"tools": ()}),
    "brackets that are no calls": ("Odd:", {}),
    "an unfinished call": ("Half:", {}),
    "too deep a start": ("Deep:", {}),
    "wide characters": ("Wide:", {}),
    "a stop string": ("Long:", {"stop": ("on and on and",)}),
    "a limit": ("Long:", {"max_tokens": 7}),
    "a limit inside a call": ("Sum:", {"max_tokens": 9}),
    "the context's end": ("Long:", {"max_tokens": 500}),
    "bare": ("Sum:", {"plain": True, "tools": ()}),
}
NEVER_BANNED: Final = [
    "a call",
    "a call that is hidden",
    "two calls",
    "wide characters",
    "a stop string",
    "a limit",
    "a limit inside a call",
    "the context's end",
    "bare",
]
LIKELY_START: Final = {"a likely start": ("Each:", {}), "a start not likely enough": ("Each:", {"api_top_k": 3})}


@pytest.mark.parametrize("tool_is_up", [True, False], ids=["tool up", "tool down"])
@pytest.mark.parametrize("kind", SERVERS)
async def test_every_backend_tells_the_same(kind: str, tool_is_up: bool) -> None:
    # Without log probabilities a start that is merely likely cannot be seen, and no token can be banned.
    cases = {name: CASES[name] for name in NEVER_BANNED} if kind == "bare" else CASES | LIKELY_START
    called = 0
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(calculator())) if tool_is_up else None
        tools, down = tools_at({"Calculator": url} if url else {}), not tool_is_up
        client = await stack.enter_async_context(ToolClient(tools, NO_CIRCUIT))
        local = Completer(await stack.enter_async_context(started("local")), tools, client)
        other = Completer(await stack.enter_async_context(started(kind)), tools, client)
        for name, (prompt, fields) in cases.items():
            expected = await tell(local, prompt, **fields)
            if kind == "bare" and down and expected.calls:
                continue
            told = await tell(other, prompt, **fields)
            assert told.text == expected.text, name
            assert told.calls == expected.calls, name
            assert told.end == expected.end, name
            if kind not in ("bare", "llamacpp"):
                assert told.ids == expected.ids, name
            called += len(told.calls)
    assert called >= (0 if kind == "bare" and down else 4)


async def test_a_server_that_cannot_be_told_writes_a_banned_call_as_text() -> None:
    tools = tools_at({})
    async with ToolClient(tools) as client, remote("bare") as backend:
        told = await tell(Completer(backend, tools, client), "Sum:", max_tokens=20)
        assert [error for _, _, _, error, _ in told.calls] == ["unreachable"]
        assert told.text.startswith(" It is [Calculator(24 * 17)")
