"""Completions inside vLLM, and on servers of vLLM and llama.cpp, are those of the local engine, on the same model."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import pytest
import pytest_asyncio

from inference_gateway.backends.local import LocalBackend
from inference_gateway.backends.remote import RemoteBackend
from inference_gateway.completion import Completer
from inference_gateway.core import CompletionRequest, Event, Finished, PromptScored, SamplingParams, TextDelta
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.engines.harness import TOKENIZER, idle, prompts, run_prompts
from tests.inference_gateway.backend_harness import NO_CIRCUIT, Completed
from tests.inference_gateway.http_harness import serving, tools_at
from tests.toolformer import tool_service
from toolformer.tool_client import ToolClient

if TYPE_CHECKING:
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend

pytestmark = pytest.mark.asyncio(loop_scope="session")
INSIDE: Final = pytest.param("inside", marks=pytest.mark.vllm)
IN_FRONT: Final = pytest.param("vllm_server", marks=pytest.mark.vllm)
LLAMA: Final = pytest.param("llama_server", marks=pytest.mark.llama)
only_inside = pytest.mark.parametrize("backend", [INSIDE], indirect=True)
only_llama = pytest.mark.parametrize("backend", [LLAMA], indirect=True)

VISITORS: Final = [
    "Hello",
    "x = [1, 2, 3]\nprint(x",
    "See [1] and [2",
    "Q: 3+3?\nA:",
    "💡 idea:",
    "merci beaucoup means",
]
MIXED: Final = [*VISITORS, *prompts("word problems", 4), *prompts("facts", 4)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def both(backend: VllmBackend | RemoteBackend, local: LocalBackend) -> AsyncIterator[tuple[Completer, Completer]]:
    """Completers on the engine and on the local one; of the tools, calculator and calendar answer."""
    async with contextlib.AsyncExitStack() as stack:
        urls = {
            "Calculator": await stack.enter_async_context(serving(calculator())),
            "Calendar": await stack.enter_async_context(serving(calendar())),
        }
        tools = tools_at(urls)
        client = await stack.enter_async_context(ToolClient(tools, NO_CIRCUIT))
        yield Completer(backend, tools, client), Completer(local, tools, client)


async def compare(both: tuple[Completer, Completer], texts: list[str], **fields: Any) -> list[Completed]:
    """What the engine says to ``texts``, which must be what the local engine says."""
    results = [await run_prompts(completer, texts, **fields) for completer in both]
    for text, inside, local in zip(texts, *results, strict=True):
        assert (inside.text, inside.calls, inside.end) == (local.text, local.calls, local.end), (text, fields)
    return results[0]


async def test_calls_that_work(both: tuple[Completer, Completer]) -> None:
    results = await compare(both, [*prompts("word problems", 30), *prompts("dates", 20)], max_tokens=48)
    assert sum(any(error is None for _, _, _, error, _ in one.calls) for one in results) > 20


@only_inside
async def test_a_call_that_works_costs_no_token_twice(both: tuple[Completer, Completer], backend: VllmBackend) -> None:
    fields: dict[str, Any] = {"max_tokens": 48, "stop_at": "sentence"}
    texts = prompts("word problems", 20)
    expected = await run_prompts(both[1], texts, **fields)
    usual = [
        (text, len(TOKENIZER.encode(text)) + usage.completion_tokens + usage.spliced_tokens)
        for text, one in zip(texts, expected, strict=True)
        if one.calls and not (usage := one.end.usage).rolled_back_tokens
    ]
    assert len(usual) > 2
    before = backend.stats()
    await compare(both, [text for text, _ in usual], **fields)
    after = backend.stats()
    assert after.recomputed_tokens == before.recomputed_tokens
    assert after.computed_tokens - before.computed_tokens <= sum(tokens for _, tokens in usual)


async def test_calls_that_fail(both: tuple[Completer, Completer]) -> None:
    # Behind "India is" a call is the tenth or eleventh likeliest token, as each engine rounds.
    texts = [text for text in (*prompts("facts", 16), *prompts("questions", 16)) if text != "India is"]
    results = await compare(both, texts, max_tokens=48)
    assert sum(bool(one.end.usage.rolled_back_tokens) for one in results) > 8


async def test_texts_without_calls(both: tuple[Completer, Completer]) -> None:
    texts = [*VISITORS, *prompts("facts", 6)]
    await compare(both, texts, tools=())
    await compare(both, texts, plain=True, tools=())
    await compare(both, texts, api_top_k=0)


FIELDS: Final[dict[str, dict[str, Any]]] = {
    "visitors": {},
    "hidden": {"show_calls": False},
    "two calls": {"max_calls": 2},
    "greedy starts": {"api_top_k": 1},
    "few tokens": {"max_tokens": 9},
    "one token": {"max_tokens": 1},
    "a sentence": {"stop_at": "sentence"},
    "stop strings": {"stop": ("the", "in ")},
    "one tool": {"tools": ("QA",)},
    "biases": {"sampling": SamplingParams(logit_bias=((7, 3.0), (60, -4.0)), min_tokens=12)},
    "arrows in the text": {"sampling": SamplingParams(logit_bias=((TOKENIZER.marks.arrow[0], 12.0),))},
    "stop tokens": {"sampling": SamplingParams(stop_token_ids=tuple(TOKENIZER.encode(" in of and")))},
}


@pytest.mark.parametrize("fields", FIELDS.values(), ids=list(FIELDS))
async def test_every_field(both: tuple[Completer, Completer], fields: dict[str, Any]) -> None:
    await compare(both, MIXED, **{"max_tokens": 32} | fields)


@pytest.mark.parametrize("backend", [INSIDE, IN_FRONT], indirect=True)  # llama.cpp bans the end
async def test_an_end_that_is_one_token_like_any_other(both: tuple[Completer, Completer]) -> None:
    await compare(both, MIXED, max_tokens=40, sampling=SamplingParams(ignore_eos=True))


@only_inside  # in front of a server they differ after a cut: `remote_session.continued`
async def test_penalties(both: tuple[Completer, Completer]) -> None:
    penalties = SamplingParams(frequency_penalty=0.6, presence_penalty=0.2, repetition_penalty=1.1)
    await compare(both, MIXED, max_tokens=32, sampling=penalties)


@pytest.mark.parametrize(
    "sampling",
    [SamplingParams(frequency_penalty=1.2), SamplingParams(repetition_penalty=1.2)],
    ids=["frequency", "repetition"],
)
async def test_a_penalty_where_nothing_is_cut(both: tuple[Completer, Completer], sampling: SamplingParams) -> None:
    await compare(both, [*VISITORS, *prompts("facts", 6)], max_tokens=32, tools=(), sampling=sampling)


async def test_the_end_of_the_context(both: tuple[Completer, Completer]) -> None:
    [result] = await compare(both, [" and on" * 240], max_tokens=500)
    assert result.end.reason in ("length", "stop")


@only_llama  # it does not report tokens of a character that is not whole
async def test_a_limit_inside_a_character(both: tuple[Completer, Completer]) -> None:
    half = next(token for token in range(TOKENIZER.vocab_size) if TOKENIZER.token_bytes(token) == b"\xc3")
    only_halves = SamplingParams(logit_bias=((half, 100.0),))
    [result] = await run_prompts(both[0], ["A"], max_tokens=3, sampling=only_halves)
    assert (result.text, result.end.reason) == ("", "length")


async def events(completer: Completer, request: CompletionRequest) -> list[Event]:
    return [event async for event in completer.stream(request)]


async def test_log_probabilities(
    both: tuple[Completer, Completer], backend: VllmBackend | RemoteBackend, request: pytest.FixtureRequest
) -> None:
    # llama.cpp takes GELU from a table of 16-bit numbers.
    near = 0.02 if request.node.callspec.params["backend"] == "llama_server" else 1e-3
    [text] = prompts("word problems", 1)
    asked = CompletionRequest(
        tuple(TOKENIZER.encode(text)),
        max_tokens=32,
        tools=("Calculator",),
        logprobs=3,
        prompt_logprobs=backend.scores_prompts,
    )
    tokens_of_both = []
    for completer in both:
        came = await events(completer, asked)
        assert sum(isinstance(event, PromptScored) for event in came) == backend.scores_prompts
        tokens_of_both.append(
            [token for event in came if isinstance(event, PromptScored | TextDelta) for token in event.tokens]
        )
    for inside, local in zip(*tokens_of_both, strict=True):
        assert (inside.id, inside.offset) == (local.id, local.offset)
        assert inside.logprob == pytest.approx(local.logprob, abs=near)
        assert [logprob for _, logprob in inside.top] == pytest.approx([logprob for _, logprob in local.top], abs=near)


@only_inside
async def test_a_prompt_that_is_only_scored(both: tuple[Completer, Completer]) -> None:
    request = CompletionRequest((5, 6, 7), max_tokens=0, logprobs=0, prompt_logprobs=True)
    scored, end = await events(both[0], request)
    assert isinstance(scored, PromptScored)
    assert [token.id for token in scored.tokens] == [5, 6, 7]
    assert isinstance(end, Finished)
    assert (end.reason, end.usage.completion_tokens) == ("length", 0)


async def test_drawn_tokens_obey_the_rules_and_a_seed_repeats_them(both: tuple[Completer, Completer]) -> None:
    texts = [*VISITORS, *prompts("word problems", 6)]
    drawn = SamplingParams(temperature=0.9, top_p=0.95, top_k=40, min_p=0.01, seed=11)
    first = await run_prompts(both[0], texts, sampling=drawn, max_tokens=32, tools=("Calculator",))
    assert first == await run_prompts(both[0], texts, sampling=drawn, max_tokens=32, tools=("Calculator",))
    assert any(one.calls for one in first)
    assert {call[0] for one in first for call in one.calls} <= {"", "Calculator"}


async def test_seeded_prompts_that_are_more_than_one_step_computes(both: tuple[Completer, Completer]) -> None:
    texts = [f"{number}{' and on' * 200}" for number in range(12)]
    drawn = SamplingParams(temperature=0.9, seed=11)
    results = await run_prompts(both[0], texts, at_once=len(texts), sampling=drawn, max_tokens=4, tools=())
    assert {one.end.reason for one in results} <= {"length", "stop"}


async def test_clients_that_leave_free_what_they_held(backend: VllmBackend | RemoteBackend) -> None:
    async with tool_service.serve(tool_service.silent) as silent:
        tools = tools_at({"Calculator": silent.url})
        async with ToolClient(tools, NO_CIRCUIT) as client:
            completer = Completer(backend, tools, client)
            [text] = prompts("word problems", 1)
            asked = CompletionRequest(tuple(TOKENIZER.encode(text)), max_tokens=48, tools=("Calculator",))
            leaving = asyncio.create_task(events(completer, asked))
            async with asyncio.timeout(60):
                await silent.arrived.wait()
            leaving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leaving
            stream = completer.stream(CompletionRequest(asked.prompt_ids, max_tokens=400))
            await anext(stream)
            await stream.aclose()
            await idle(backend)


async def test_a_completion_that_takes_too_long_ends_with_timeout(backend: VllmBackend | RemoteBackend) -> None:
    async with tool_service.serve(tool_service.silent) as silent:
        tools = tools_at({"Calculator": silent.url})
        async with ToolClient(tools, NO_CIRCUIT) as client:
            [text] = prompts("word problems", 1)
            asked = CompletionRequest(
                tuple(TOKENIZER.encode(text)), max_tokens=48, tools=("Calculator",), tool_timeout=60, timeout=2
            )
            *_, end = await events(Completer(backend, tools, client), asked)
            assert isinstance(end, Finished)
            assert end.reason == "timeout"
            await idle(backend)
