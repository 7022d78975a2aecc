"""Chats over the gateway: OpenAI's official client, what is refused, and the tokens of a text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import Gateway, Stream, gateway, serving
from tests.support.vocabularies import small_tokenizer

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHOWN = " It is [Calculator(24 * 17) -> 408] 408 books."
HIDDEN = " It is 408 books."
ASKED: Any = [{"role": "user", "content": "Sum:"}]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chatting() -> AsyncIterator[Gateway]:
    async with serving(calculator()) as url, gateway({"Calculator": url}, chat_template="plain") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def client(chatting: Gateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{chatting.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.mark.parametrize(("show", "text"), [(True, SHOWN), (False, HIDDEN)])
async def test_an_answer_with_calls_shown_or_hidden(client: openai.AsyncOpenAI, show: bool, text: str) -> None:
    extra = {"show_calls": show}
    whole = await client.chat.completions.create(model="scripted", messages=ASKED, extra_body=extra)
    [choice] = whole.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", text, "stop")
    assert choice.message.tool_calls is None  # what a client would have to run
    assert choice.model_extra is not None
    assert [call["output"] for call in choice.model_extra["tool_calls"]] == ["408"]
    assert whole.id.startswith("chatcmpl-")
    stream = await client.chat.completions.create(
        model="scripted",
        messages=ASKED,
        stream=True,
        stream_options={"include_usage": True},
        extra_body={**extra, "stream_tool_events": True},
    )
    chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert "".join(delta.content or "" for delta in deltas) == text
    assert [delta.role for delta in deltas] == ["assistant", *[None] * (len(deltas) - 1)]
    assert chunks[-1].usage == whole.usage
    [last] = chunks[-2].choices
    assert last.model_extra is not None
    assert (last.finish_reason, last.model_extra["tool_calls"][0]["output"]) == ("stop", "408")
    events = [chunk.choices[0].model_extra.get("tool_event") for chunk in chunks[:-1] if chunk.choices[0].model_extra]
    assert [event["type"] for event in events if event] == ["call_started", "call_finished"]


async def test_an_answer_is_the_completion_of_the_prompt(client: openai.AsyncOpenAI, chatting: Gateway) -> None:
    fields: dict[str, Any] = {"n": 2, "seed": 3, "temperature": 0.0, "stop": ["books"]}
    answer = await client.chat.completions.create(model="scripted", messages=ASKED, max_completion_tokens=30, **fields)
    same = await chatting.complete("Sum:", max_tokens=30, **fields)
    assert [choice.message.content for choice in answer.choices] == [choice["text"] for choice in same["choices"]]
    assert answer.usage is not None
    assert answer.usage.model_dump(include={"prompt_tokens", "completion_tokens"}) == {
        name: same["usage"][name] for name in ("prompt_tokens", "completion_tokens")
    }
    short = await client.chat.completions.create(model="scripted", messages=ASKED, max_tokens=2)
    assert short.choices[0].finish_reason == "length"


async def test_log_probabilities(client: openai.AsyncOpenAI) -> None:
    messages: Any = [{"role": "user", "content": "Wide:"}]
    asked: dict[str, Any] = {"model": "scripted", "messages": messages, "logprobs": True, "top_logprobs": 2}
    [choice] = (await client.chat.completions.create(**asked)).choices
    assert choice.logprobs is not None
    assert choice.logprobs.content is not None
    whole = choice.logprobs.content
    assert (
        bytes(byte for token in whole for byte in token.bytes or []).decode().startswith(choice.message.content or "?")
    )
    assert {len(token.top_logprobs) for token in whole} == {2}
    assert all(a.top_logprobs[0].logprob >= a.top_logprobs[1].logprob for a in whole)
    streamed: list[Any] = []
    async for chunk in await client.chat.completions.create(**asked, stream=True):
        for part in chunk.choices:
            streamed += part.logprobs.content or [] if part.logprobs else []
    assert [token.model_dump() for token in streamed] == [token.model_dump() for token in whole]


async def test_a_chat_goes_on_with_the_answer_sent_back(client: openai.AsyncOpenAI) -> None:
    first = await client.chat.completions.create(model="scripted", messages=ASKED)
    parts = [{"type": "text", "text": "Wide"}, {"type": "text", "text": "Plain:"}]
    messages: Any = [
        {"role": "developer", "content": "Be brief."},
        *ASKED,
        first.choices[0].message.model_dump(),
        {"role": "user", "content": parts, "name": "ann"},
    ]
    second = await client.chat.completions.create(model="scripted", messages=messages)
    assert second.choices[0].message.content == " a plain text."


FUNCTION = {"type": "function", "function": {"name": "add", "parameters": {}}}


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"messages": []}, 422, "messages"),
        ({"messages": None}, 422, "messages"),
        ({"messages": [{"role": "user", "content": ""}]}, 422, "messages"),
        ({"messages": [{"role": "user", "content": "a"}] * 1025}, 422, "messages"),
        ({"messages": [{"role": "tool", "content": "4"}]}, 422, "messages.0.role"),
        ({"messages": [{"role": "user", "content": "\ud83d"}]}, 422, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 422, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "a " * 1000}]}, 400, "messages"),
        ({"tools": [FUNCTION]}, 422, "tools"),
        ({"top_logprobs": 2}, 422, "top_logprobs"),
        ({"max_tokens": 0}, 422, "max_tokens"),
        ({"max_completion_tokens": 4000}, 400, "max_completion_tokens"),
        ({"max_completion_token": 4}, 422, "max_completion_token"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format"),
        ({"chat_template": "{{ messages }}"}, 400, "chat_template"),
        ({"model": "another"}, 404, "model"),
        ({"n": 99}, 422, "n"),
    ],
)
async def test_what_is_refused(chatting: Gateway, fields: dict[str, Any], status: int, param: str) -> None:
    body = json.dumps({"messages": ASKED, **fields})  # half a character, too, which the client would not encode
    headers = {"Content-Type": "application/json"}
    response = await chatting.http.post("/v1/chat/completions", content=body, headers=headers)
    assert (response.status_code, response.json()["error"]["param"]) == (status, param), response.text


async def test_token_ids_come_once(chatting: Gateway) -> None:
    body = {"messages": [{"role": "user", "content": "Plain:"}], "return_token_ids": True, "stream": True}
    stream = Stream.read((await chatting.http.post("/v1/chat/completions", json=body)).content)
    choices = [chunk["choices"][0] for chunk in stream.chunks]
    assert [choice["prompt_token_ids"] for choice in choices if "prompt_token_ids" in choice] == [
        small_tokenizer().encode("Plain:")
    ]
    ids = [token for choice in choices for token in choice["token_ids"]]
    assert ids == small_tokenizer().encode(" a plain text.")


async def test_a_chat_counts_in_its_keys_share_and_in_the_metrics() -> None:
    async with gateway(chat_template="plain", api_keys="alice:k-1", key="k-1", key_requests_per_minute=1) as running:
        body = {"messages": [{"role": "user", "content": "Plain:"}]}
        assert (
            await running.http.post("/v1/chat/completions", json=body, headers={"Authorization": ""})
        ).status_code == 401
        assert (await running.http.post("/v1/chat/completions", json=body)).status_code == 200
        assert (await running.http.post("/v1/chat/completions", json=body)).status_code == 429
        assert await running.metric('toolformer_completions_total{finish_reason="stop"}') == 1
        [other] = [await running.http.post("/v1/responses", json=body)]
        assert "send POST /v1/chat/completions" in other.json()["error"]["message"]


async def test_tokens_of_a_text_and_back(chatting: Gateway) -> None:
    text = "Größer 🙂 <|endoftext|>"
    answer = (await chatting.http.post("/tokenize", json={"prompt": text, "return_token_strs": True})).json()
    assert answer["tokens"] == small_tokenizer().encode(text)
    assert (answer["count"], answer["max_model_len"]) == (len(answer["tokens"]), 256)
    assert "".join(answer["token_strs"]).startswith("GrÃ¶ÃŁer")
    back = await chatting.http.post("/detokenize", json={"model": "scripted", "tokens": answer["tokens"]})
    assert back.json() == {"prompt": text}
    assert (await chatting.http.post("/detokenize", json={"tokens": []})).json() == {"prompt": ""}
    asked = {"prompt": "", "add_special_tokens": True}
    assert (await chatting.http.post("/tokenize", json=asked)).json() == {
        "tokens": [], "count": 0, "max_model_len": 256, "token_strs": None,
    }  # fmt: skip
    unknown = await chatting.http.post("/detokenize", json={"tokens": [1, 99_999]})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (422, "unknown_token")
    missing = await chatting.http.post("/tokenize", json={"prompt": "a", "model": "another"})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "model_not_found")
