"""OpenAI's official client, unmodified."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from tests.inference_gateway.http_harness import Gateway, ScriptedSampler, gateway
from tests.inference_gateway.test_http_lifecycle import not_loaded_yet

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def client(tooled: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{tooled.url}/v1", api_key="none", max_retries=0) as client:
        yield client


async def test_a_completion(client: openai.AsyncOpenAI) -> None:
    completion = await client.completions.create(model="scripted", prompt="Sum:", max_tokens=40)
    [choice] = completion.choices
    assert choice.text == " It is [Calculator(24 * 17) -> 408] 408 books."
    assert choice.finish_reason == "stop"
    assert choice.model_extra is not None
    assert choice.model_extra["tool_calls"][0]["output"] == "408"
    assert completion.usage is not None
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens


async def test_our_own_fields_pass_as_extra_ones(client: openai.AsyncOpenAI) -> None:
    completion = await client.completions.create(
        model="scripted",
        prompt="Day:",
        max_tokens=40,
        extra_body={"tools": ["Calendar"], "tool_context": {"date": "2026-11-20"}, "show_calls": False},
    )
    assert completion.choices[0].text == " Now"
    assert completion.choices[0].model_extra is not None
    assert completion.choices[0].model_extra["tool_calls"][0]["output"] == "Today is Friday, November 20, 2026."


async def test_log_probabilities_and_sampling(client: openai.AsyncOpenAI) -> None:
    completion = await client.completions.create(
        model="scripted",
        prompt="Sum:",
        max_tokens=40,
        logprobs=2,
        echo=True,
        temperature=0.5,
        top_p=0.5,
        seed=1,
        presence_penalty=0.1,
        frequency_penalty=0.1,
        logit_bias={"5": -1},
        stop=["\n"],
        user="somebody",
        n=1,
        best_of=1,
    )
    [choice] = completion.choices
    logprobs = choice.logprobs
    assert logprobs is not None
    assert logprobs.tokens is not None
    assert logprobs.token_logprobs is not None
    assert logprobs.text_offset is not None
    assert logprobs.top_logprobs is not None
    # What ended the text has a log probability too, and no text.
    assert "".join(logprobs.tokens).removesuffix("<|endoftext|>") == choice.text
    assert choice.text.startswith("Sum: It is")
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == len(logprobs.top_logprobs)
    assert [choice.text[at:].startswith(token) for at, token in zip(logprobs.text_offset, logprobs.tokens, strict=True)]
    stream = await client.completions.create(
        model="scripted", prompt="Sum:", max_tokens=40, logprobs=0, stream=True, extra_body={"top_k": 5}
    )
    tokens = ""
    async for chunk in stream:
        for part in chunk.choices:
            tokens += "".join(part.logprobs.tokens or []) if part.logprobs else ""
    assert tokens.removesuffix("<|endoftext|>") == " It is [Calculator(24 * 17) -> 408] 408 books."


async def test_a_key_is_sent_and_shares_are_reported() -> None:
    async with (
        gateway(api_keys="alice:k-1", key="k-1", key_requests_per_minute=1) as running,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="k-1", max_retries=0) as known,
        openai.AsyncOpenAI(base_url=f"{running.url}/v1", api_key="k-2", max_retries=0) as stranger,
    ):
        with pytest.raises(openai.AuthenticationError) as refused:
            await stranger.models.list()
        assert refused.value.code == "invalid_api_key"
        assert (await known.completions.create(model="scripted", prompt="Plain:")).choices[0].text == " a plain text."
        with pytest.raises(openai.RateLimitError) as limited:
            await known.completions.create(model="scripted", prompt="Plain:")
        assert limited.value.code == "rate_limit_exceeded"
        assert int(limited.value.response.headers["retry-after"]) > 0


async def test_a_stream_with_tool_events_and_usage(client: openai.AsyncOpenAI) -> None:
    stream = await client.completions.create(
        model="scripted",
        prompt=["Sum:", "Wide:"],
        max_tokens=40,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={"stream_tool_events": True},
    )
    texts = ["", ""]
    reasons: list[list[str]] = [[], []]
    usage = None
    async for chunk in stream:
        for choice in chunk.choices:
            texts[choice.index] += choice.text
            reasons[choice.index] += [choice.finish_reason] if choice.finish_reason else []
        usage = chunk.usage or usage
    whole = await client.completions.create(model="scripted", prompt=["Sum:", "Wide:"], max_tokens=40)
    assert texts == [choice.text for choice in whole.choices]
    assert reasons == [["stop"], ["stop"]]
    assert usage == whole.usage


async def test_the_synchronous_client(tooled: Gateway) -> None:
    def use() -> tuple[str, str]:
        with openai.OpenAI(base_url=f"{tooled.url}/v1", api_key="none", max_retries=0) as client:
            [model] = client.models.list()
            with client.completions.create(model=model.id, prompt="Sum:", max_tokens=40, stream=True) as stream:
                text = "".join(choice.text for chunk in stream for choice in chunk.choices)
            return client.models.retrieve(model.id).id, text

    assert await asyncio.to_thread(use) == ("scripted", " It is [Calculator(24 * 17) -> 408] 408 books.")


async def test_errors_become_the_client_s_own(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        await client.completions.create(model="another", prompt="Sum:")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.BadRequestError) as long:
        await client.completions.create(model="scripted", prompt="Sum:", max_tokens=4000, stream=True)
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.UnprocessableEntityError, match="max_tokens"):
        await client.completions.create(model="scripted", prompt="Sum:", max_tokens=-1)


async def test_a_chat_is_refused_with_what_to_send(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="send POST /v1/completions with"):
        await client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": "2 + 2?"}])


async def test_trouble_in_a_stream_raises(
    client: openai.AsyncOpenAI, tooled: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose, steps = ScriptedSampler.choose, iter(range(3))
    monkeypatch.setattr(
        ScriptedSampler, "choose", lambda *given: choose(*given) if next(steps, None) is not None else 1 / 0
    )
    stream = await client.completions.create(model="scripted", prompt="Long:", max_tokens=40, stream=True)
    with pytest.raises(openai.APIError, match="the model failed"):
        [chunk async for chunk in stream]


async def test_a_gateway_that_is_not_ready_is_asked_again() -> None:
    async with not_loaded_yet() as (url, load):
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            with pytest.raises(openai.InternalServerError) as refused:
                await client.completions.create(model="scripted", prompt="Plain:")
            assert refused.value.code == "not_ready"
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=5) as client:
            load.set()
            completion = await client.completions.create(model="scripted", prompt="Plain:")
    assert completion.choices[0].text == " a plain text."


LOAD_TESTERS: dict[str, dict[str, Any]] = {
    "vllm bench serve 0.32": {
        "repetition_penalty": 1.0,
        "logprobs": None,
        "stream_options": {"include_usage": True},
    },
    "vllm bench serve 0.32 --ignore-eos --temperature 0 --top-k -1 --min-p 0": {
        "repetition_penalty": 1.0,
        "logprobs": None,
        "stream_options": {"include_usage": True},
        "ignore_eos": True,
        "temperature": 0.0,
        "top_k": -1,
        "min_p": 0.0,
    },
    "GuideLLM 0.8 with a number of output tokens": {
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "stop": None,
        "ignore_eos": True,
    },
}
"""What these clients send beside model, prompt, max_tokens and stream, read from their sources (November 2026)."""


@pytest.mark.parametrize("client", LOAD_TESTERS)
async def test_what_load_testers_send_is_answered_to_the_asked_length(tooled: Gateway, client: str) -> None:
    fields = LOAD_TESTERS[client]
    stream = await tooled.stream("Sum:", model="scripted", max_tokens=40, **fields)
    assert stream.text().startswith(" It is [Calculator(24 * 17) -> 408] 408 books.")
    assert stream.chunks[-1]["choices"] == []
    made = stream.chunks[-1]["usage"]["completion_tokens"]
    assert made == 40 if fields.get("ignore_eos") else made < 40
