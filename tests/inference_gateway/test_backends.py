"""One behaviour on every backend: the same model behind the local engine and behind each kind of server gives the same
text, token ids, calls and counts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from inference_gateway.backends.base import Backend
from inference_gateway.backends.model_server import ServerAddress
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.backends.tgi import TGIServer
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, CallStarted, CompletionRequest, Finished, TextDelta
from inference_gateway.decoding import CallVocabulary
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import serving, tools_at
from tests.inference_gateway.model_servers import END, Behaviour, brainy_backend, completions_app, tgi_app
from tests.support.vocabularies import small_tokenizer
from toolformer.tool_client import RetryPolicy, ToolClient

SERVERS: Final = ["vllm", "sglang", "llamacpp", "bare", "tgi"]
NO_CIRCUIT: Final = RetryPolicy(failure_threshold=1000)
VOCABULARY: Final = CallVocabulary.of(small_tokenizer(), [END])


@asynccontextmanager
async def remote(kind: str, behaviour: Behaviour | None = None, **limits: Any) -> AsyncIterator[RemoteBackend]:
    """A started backend that stands on a server of ``kind``."""
    behaviour = behaviour or Behaviour(max_top=5 if kind == "tgi" else 20)
    app = tgi_app(behaviour) if kind == "tgi" else completions_app(kind, behaviour)
    async with serving(app) as url:
        address = ServerAddress(url, silence_seconds=20)
        server = TGIServer(address, small_tokenizer()) if kind == "tgi" else OpenAIServer(address, small_tokenizer())
        backend = RemoteBackend(server, small_tokenizer(), VOCABULARY, RemoteLimits(**{"max_model_len": 200} | limits))
        await backend.start()
        assert backend.ready(), backend.why_not_ready()
        try:
            yield backend
        finally:
            await backend.stop()


@asynccontextmanager
async def started(kind: str) -> AsyncIterator[Backend]:
    if kind != "local":
        async with remote(kind) as backend:
            yield backend
        return
    local = brainy_backend()
    await local.start()
    try:
        yield local
    finally:
        await local.stop()


@dataclass
class Told:
    """What a client is told of a completion."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    calls: list[tuple[str, str, str | None, str | None, int]] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    ends: list[Finished] = field(default_factory=list)

    @property
    def end(self) -> Finished:
        [end] = self.ends
        return replace(end, usage=replace(end.usage, cached_tokens=0))


async def tell(completer: Completer, prompt: str, **fields: Any) -> Told:
    """Complete ``prompt``."""
    wanted: dict[str, Any] = {"max_tokens": 60, "tools": ("Calculator",), "max_calls": 2, "tool_timeout": 30.0}
    request = CompletionRequest(prompt_ids=tuple(small_tokenizer().encode(prompt)), **wanted | fields)
    told = Told()
    async for event in completer.stream(request):
        assert not told.ends, "nothing may follow the end"
        match event:
            case TextDelta(text, tokens):
                told.text += text
                told.ids += [token.id for token in tokens]
            case CallStarted(tool):
                told.started.append(tool)
            case CallFinished(record):
                error = record.error and record.error.partition(":")[0]
                told.calls.append((record.tool, record.input, record.output, error, record.offset))
            case Finished():
                told.ends.append(event)
    return told


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
