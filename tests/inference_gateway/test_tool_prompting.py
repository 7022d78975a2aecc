"""Demonstrations of tools before a prompt: what the model reads, and nobody sees."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

import pytest
import pytest_asyncio

from inference_gateway.completion import Completer
from inference_gateway.core import CompletionRequest
from inference_gateway.serving.planning import plan
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.settings import GatewaySettings
from services.calculator.app import build_app as calculator
from tests.inference_gateway.backend_harness import NO_CIRCUIT, run_request, started
from tests.inference_gateway.http_harness import CLOSED, Gateway, gateway, random_backend, serving, tools_at
from tests.support.vocabularies import small_tokenizer
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOWN: Final = "Each box holds [Calculator(3 * 5) -> 15] 15 books."
TOKENS: Final = len(small_tokenizer().encode(f"{SHOWN}\n"))


def registry(url: str = CLOSED) -> ToolRegistry:
    """The calculator, with a prompt that a small model has room for."""
    [tool] = tools_at({"Calculator": url}).select(["Calculator"])
    return ToolRegistry([tool.model_copy(update={"short_prompt": SHOWN})])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def prompting() -> AsyncIterator[Gateway]:
    """A gateway that prompts its tool in front of a model of random weights."""
    async with gateway(make=random_backend, registry=registry(), tool_prompting=True) as running:
        yield running


@pytest.mark.parametrize("kind", ["local", "vllm", "bare"])
async def test_it_is_the_same_as_the_prompt_written_by_hand(kind: str) -> None:
    async with AsyncExitStack() as stack:
        tools = registry(await stack.enter_async_context(serving(calculator())))
        client = await stack.enter_async_context(ToolClient(tools, NO_CIRCUIT))
        completer = Completer(await stack.enter_async_context(started(kind)), tools, client)

        async def request(**fields: Any) -> CompletionRequest:
            body = CompletionBody.model_validate({"max_tokens": 60, "max_calls": 2, **fields})
            return (await plan(body, completer, GatewaySettings(), request_id="r")).choices[0].request

        for prompt in ("Sum:", "Two:", "Wide:", " jumps over"):
            hidden = await request(prompt=prompt, tool_prompting=True)
            written = await request(prompt=f"{SHOWN}\n{prompt}")
            assert hidden == replace(written, hidden=TOKENS)
            one, other = await run_request(completer, hidden), await run_request(completer, written)
            assert (one.text, one.ids, one.calls) == (other.text, other.ids, other.calls)
            usage = other.end.usage
            assert one.end.usage == replace(usage, prompt_tokens=usage.prompt_tokens - TOKENS, hidden_tokens=TOKENS)
        assert one.text == " the lazy dog."


async def test_nothing_of_it_is_seen(prompting: Gateway) -> None:
    fields: dict[str, Any] = {"echo": True, "logprobs": 2, "return_token_ids": True, "max_tokens": 6}
    prompt = "Each of the 24 boxes"
    [hidden] = (answer := await prompting.complete(prompt, **fields))["choices"]
    stream = await prompting.stream(prompt, **fields, stream_options={"include_usage": True})
    [written] = (await prompting.complete(f"{SHOWN}\n{prompt}", **fields, tool_prompting=False))["choices"]
    assert f"{SHOWN}\n{hidden['text']}" == written["text"] == f"{SHOWN}\n{stream.text()}"
    assert hidden["token_ids"] == written["token_ids"]
    ids = small_tokenizer().encode(prompt)
    assert hidden["prompt_token_ids"] == ids == written["prompt_token_ids"][TOKENS:]
    assert stream.choices[0]["prompt_token_ids"] == ids
    assert hidden["logprobs"]["text_offset"][0] == 0
    assert hidden["logprobs"]["tokens"] == written["logprobs"]["tokens"][TOKENS:]
    first, *others = hidden["logprobs"]["token_logprobs"]
    assert first is None
    assert others == pytest.approx(written["logprobs"]["token_logprobs"][TOKENS + 1 :], abs=1e-4)
    for usage in (answer["usage"], stream.chunks[-1]["usage"]):
        assert (usage["prompt_tokens"], usage["hidden_prompt_tokens"]) == (len(ids), TOKENS)
        assert usage["total_tokens"] == len(ids) + usage["completion_tokens"]


@pytest.mark.parametrize("fields", [{}, {"echo": True, "logprobs": 1}])
async def test_none_of_its_tokens_is_computed_again(prompting: Gateway, fields: dict[str, Any]) -> None:
    for prompt in ("It is", "Peru", "Today"):
        before = prompting.backend.stats()
        answer = await prompting.complete(prompt, max_tokens=4, **fields)
        await prompting.idle()
        after = prompting.backend.stats()
        if prompt != "It is":
            usage = answer["usage"]
            assert after.prefix_hits - before.prefix_hits == TOKENS
            made = usage["completion_tokens"] + usage["rolled_back_tokens"]
            again = after.recomputed_tokens - before.recomputed_tokens  # behind a call that was taken back
            assert after.computed_tokens - before.computed_tokens <= usage["prompt_tokens"] + made + again
            assert usage["prompt_tokens_details"] == {"cached_tokens": 0}


async def test_a_scored_prompt_computed_in_pieces_is_the_same() -> None:
    fields: dict[str, Any] = {"echo": True, "logprobs": 0, "max_tokens": 0}
    scores = []
    for pieces in (3, 256):
        async with gateway(
            make=random_backend, registry=registry(), limits={"prefill_tokens": pieces}, tool_prompting=True
        ) as running:
            for prompt in ("Each of the 24 boxes", "Each of the 17 books"):
                [choice] = (await running.complete(prompt, **fields))["choices"]
                assert choice["text"] == prompt
                scores.append(choice["logprobs"]["token_logprobs"][1:])
    assert scores[:2] == [pytest.approx(one, abs=1e-4) for one in scores[2:]]


async def test_it_is_left_out_where_no_call_may_be_made(prompting: Gateway) -> None:
    cases: list[dict[str, Any]] = [{"tools": []}, {"api_top_k": 0}, {"max_calls": 0}, {"plain": True}]
    for fields in [*cases, {"tool_prompting": False}]:
        usage = (await prompting.complete("Peru", **fields))["usage"]
        assert usage["hidden_prompt_tokens"] == 0, fields


async def test_what_leaves_no_room_is_refused(prompting: Gateway) -> None:
    async def refused(running: Gateway, **fields: Any) -> tuple[int, str, str, str]:
        response = await running.http.post("/v1/completions", json=fields)
        error = response.json()["error"]
        return response.status_code, error["param"], error["code"], error["message"]

    limit = "the model takes at most 256 tokens, prompt and completion together"
    hidden = f"; showing it the tools takes {TOKENS} of them"
    left = 256 - TOKENS
    assert await refused(prompting, prompt=[70] * left) == (
        400, "prompt", "context_length_exceeded", f"{limit}{hidden}; the prompt has {left}: shorten it to {left - 1}"
    )  # fmt: skip
    status, param, _, message = await refused(prompting, prompt=[70], max_tokens=left)
    assert (status, param) == (400, "max_tokens")
    assert hidden in message
    status, param, _, message = await refused(prompting, prompt="Peru", plain=True, tool_prompting=True)
    assert (status, param) == (422, "tool_prompting")
    async with gateway() as running:
        status, param, code, message = await refused(running, prompt="Peru", tool_prompting=True)
    assert (status, param, code) == (400, "tool_prompting", "context_length_exceeded")
    assert "short_prompt" in message
