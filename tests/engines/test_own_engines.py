"""vLLM with room for a few sequences, and on two ranks behind HTTP."""

import asyncio
from typing import Any, Final

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.completion import Completer
from tests.engines.harness import load, prompts, run_prompts, vllm_backend
from tests.inference_gateway.backend_harness import NO_CIRCUIT
from tests.inference_gateway.http_harness import gateway, tools_at
from tests.toolformer import tool_service
from toolformer.tool_client import ToolClient

pytestmark = [pytest.mark.vllm, pytest.mark.asyncio(loop_scope="session")]

BLOCKS: Final = 5
"""Of vLLM's cache, one of which is never a sequence's; a block holds 128 tokens on a CPU."""


async def test_completions_that_wait_for_tools_make_way(local: LocalBackend) -> None:
    texts = prompts("word problems", 12)
    go_on = asyncio.Event()
    say = tool_service.answers(lambda call: tool_service.answer("Calculator", call, output="7"))

    async def answer_late(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        await say(seen, writer)

    async with (
        tool_service.serve(answer_late) as late,
        vllm_backend(num_gpu_blocks_override=BLOCKS) as backend,
        ToolClient(tools_at({"Calculator": late.url}), NO_CIRCUIT) as client,
    ):
        fields: dict[str, Any] = {"tools": ("Calculator",), "max_tokens": 32, "tool_timeout": 60.0}
        completer = Completer(backend, tools_at({"Calculator": late.url}), client)
        task = asyncio.create_task(run_prompts(completer, texts, at_once=len(texts), **fields))
        async with asyncio.timeout(60):
            while backend.stats().in_call < len(texts):  # noqa: ASYNC110 - no event comes when all wait
                await asyncio.sleep(0.01)
        assert backend.stats().dropped_pauses >= len(texts) - BLOCKS
        go_on.set()
        results = await task
        expected = await run_prompts(Completer(local, tools_at({"Calculator": late.url}), client), texts, **fields)
        assert [(one.text, one.calls, one.end) for one in results] == [
            (one.text, one.calls, one.end) for one in expected
        ]


async def test_two_ranks_behind_http_say_what_the_local_engine_says(local: LocalBackend) -> None:
    texts = [*prompts("word problems", 4), *prompts("facts", 4)]
    async with gateway(make=lambda: load(tensor_parallel=2)) as running, ToolClient(tools_at({}), NO_CIRCUIT) as client:
        expected = await run_prompts(Completer(local, tools_at({}), client), texts, max_tokens=32, max_calls=1)
        for text, wanted in zip(texts, expected, strict=True):
            answer = await running.complete(text, max_tokens=32, n=2, logprobs=2)
            for choice in answer["choices"]:
                assert choice["text"] == wanted.text
                assert choice["finish_reason"] == wanted.end.reason
                assert [call["tool"] for call in choice["tool_calls"]] == [call[0] for call in wanted.calls]
                if wanted.text.isascii():  # a token of half a character is written as bytes
                    assert "".join(choice["logprobs"]["tokens"]).removesuffix("<|endoftext|>") == wanted.text
            assert answer["usage"]["completion_tokens"] == 2 * wanted.end.usage.completion_tokens
        assert (await running.stream(texts[0], max_tokens=32)).text() == expected[0].text
