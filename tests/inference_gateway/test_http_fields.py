"""Request fields beside the text itself: token ids, log probabilities, sampling, the bare model."""

import dataclasses
from typing import Any

import pytest
import torch

from inference_gateway.completion import Completer
from inference_gateway.core import CompletionRequest, SamplingParams, TokenLogprob
from inference_gateway.serving.logprobs import LogprobsWriter
from inference_gateway.serving.other_fields import IGNORED, NEUTRAL
from inference_gateway.serving.planning import plan
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.settings import GatewaySettings
from tests.inference_gateway.http_harness import WIDE, Gateway, gateway, random_backend, scripted_backend, tools_at
from tests.support.models import random_model
from tests.support.vocabularies import small_tokenizer
from toolformer.tool_client import ToolClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

DONE = " It is [Calculator(24 * 17) -> 408] 408 books."


def log_probabilities(ids: list[int]) -> torch.Tensor:
    """The model's log probabilities of what follows ``ids``, computed from the first token on."""
    return torch.log_softmax(raw_logits(ids), dim=-1)


def raw_logits(ids: list[int]) -> torch.Tensor:
    """The model's logits of what follows ``ids``, computed from the first token on."""
    model = random_model()
    with torch.inference_mode():
        logits = model.extend(model.new_cache(1, 256), [0], [ids])[0].float()
    return logits.clone()


def joined(parts: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Log probabilities that came in pieces."""
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


async def test_token_ids_are_those_the_text_is_made_of(tooled: Gateway) -> None:
    tokenizer = small_tokenizer()
    answer = await tooled.complete(["Sum:", "Wide:"], return_token_ids=True)
    stream = await tooled.stream(["Sum:", "Wide:"], return_token_ids=True)
    for choice, prompt, text in zip(answer["choices"], ("Sum:", "Wide:"), (DONE, WIDE), strict=True):
        assert tokenizer.decode(choice["token_ids"]) == choice["text"] == text
        assert choice["prompt_token_ids"] == tokenizer.encode(prompt)
        chunks = [chunk for chunk in stream.choices if chunk["index"] == choice["index"]]
        assert [token for chunk in chunks for token in chunk["token_ids"]] == choice["token_ids"]
        assert [chunk["prompt_token_ids"] for chunk in chunks if "prompt_token_ids" in chunk] == [
            choice["prompt_token_ids"]
        ]
        assert "prompt_token_ids" in chunks[0]
    [hidden] = (await tooled.complete("Sum:", return_token_ids=True, show_calls=False, echo=True))["choices"]
    assert "Sum:" + tokenizer.decode(hidden["token_ids"]) == hidden["text"] == "Sum: It is 408 books."
    [without] = (await tooled.complete("Sum:"))["choices"]
    assert set(without) == {"index", "text", "finish_reason", "logprobs", "tool_calls", "timed_out"}


async def test_the_bare_model_neither_calls_nor_avoids_calls(tooled: Gateway) -> None:
    answer = await tooled.complete("Sum:", plain=True)
    [choice] = answer["choices"]
    assert (choice["text"], choice["tool_calls"]) == (" It is [Calculator(24 * 17) ->", [])
    assert answer["usage"]["tool_tokens"] == answer["usage"]["rolled_back_tokens"] == 0
    assert (await tooled.stream("Sum:", plain=True, tools=[])).text() == choice["text"]


@pytest.mark.parametrize(("fields", "text"), [({}, " a "), ({"include_stop_str_in_output": True}, " a plain")])
async def test_a_stop_string_can_be_kept(plain: Gateway, fields: dict[str, Any], text: str) -> None:
    [choice] = (await plain.complete("Plain:", stop=["plain", "text"], **fields))["choices"]
    assert (choice["text"], choice["finish_reason"]) == (text, "stop")
    assert (await plain.stream("Plain:", stop="plain", **fields)).text() == text


async def test_tokens_are_written_as_openai_writes_them() -> None:
    tokenizer = small_tokenizer()
    whole, half = tokenizer.encode(" a")[0], tokenizer.encode("ö")[0]
    tokens = (
        TokenLogprob(whole, None, (), 0),
        TokenLogprob(half, -0.5, ((whole, -0.25), (half, -0.5)), 2),
        TokenLogprob(whole, float("-inf"), ((half, -0.125),), 3),
    )
    broken = "bytes:\\xc3"
    assert LogprobsWriter(tokenizer, as_ids=False).write(tokens, shift=10).model_dump() == {
        "tokens": [" a", broken, " a"],
        "token_logprobs": [None, -0.5, -9999.0],
        "top_logprobs": [None, {" a": -0.25, broken: -0.5}, {broken: -0.125, " a": -9999.0}],
        "text_offset": [10, 12, 13],
    }
    written = LogprobsWriter(tokenizer, as_ids=True).write(tokens[1:2])
    assert written.tokens == [f"token_id:{half}"]
    assert written.top_logprobs == [{f"token_id:{whole}": -0.25, f"token_id:{half}": -0.5}]


@pytest.mark.parametrize("sampling", [{}, {"temperature": 1.0, "seed": 3, "logit_bias": {"70": 2.5}}])
async def test_log_probabilities_are_the_model_s_own(sampling: dict[str, Any]) -> None:
    fields = {"max_tokens": 12, "tools": [], "logprobs": 3, "return_token_ids": True, **sampling}
    async with gateway(make=random_backend) as running:
        [choice] = (await running.complete("Each of the", **fields))["choices"]
        stream = await running.stream("Each of the", **fields)
        [named] = (await running.complete("Each of the", **fields, return_tokens_as_token_ids=True))["choices"]
    logprobs, ids = choice["logprobs"], list(choice["prompt_token_ids"])
    assert {len(values) for values in logprobs.values()} == {len(choice["token_ids"])} == {12}
    for index, token in enumerate(choice["token_ids"]):
        expected = log_probabilities(ids)
        assert logprobs["token_logprobs"][index] == pytest.approx(float(expected[token]), abs=1e-4)
        best = expected.topk(3)
        values = sorted(logprobs["top_logprobs"][index].values(), reverse=True)
        assert len(values) == 3 + (token not in best.indices.tolist())
        assert values[:3] == pytest.approx(best.values.tolist(), abs=1e-4)
        assert logprobs["tokens"][index] in logprobs["top_logprobs"][index]
        ids.append(token)
    for name, offset in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
        assert name.startswith("bytes:") or choice["text"][offset:].startswith(name)
    assert joined([chunk["logprobs"] for chunk in stream.choices if chunk["logprobs"]]) == logprobs
    assert named["logprobs"]["tokens"] == [f"token_id:{token}" for token in choice["token_ids"]]
    assert named["logprobs"]["token_logprobs"] == logprobs["token_logprobs"]


@pytest.mark.parametrize("max_tokens", [0, 4])
async def test_an_echoed_prompt_is_scored(max_tokens: int) -> None:
    fields = {"echo": True, "logprobs": 2, "tools": [], "max_tokens": max_tokens, "return_token_ids": True}
    async with gateway(make=random_backend) as running:
        answer = await running.complete(["Each of the 24 boxes", [70, 71, 72]], **fields)
        again = await running.complete(["Each of the 24 boxes", [70, 71, 72]], **fields)
        stream = await running.stream(["Each of the 24 boxes", [70, 71, 72]], **fields, n=2)
    assert [choice["logprobs"]["tokens"] for choice in again["choices"]] == [
        choice["logprobs"]["tokens"] for choice in answer["choices"]
    ]
    for choice in answer["choices"]:
        logprobs, prompt = choice["logprobs"], choice["prompt_token_ids"]
        ids = prompt + choice["token_ids"]
        assert {len(values) for values in logprobs.values()} == {len(ids)} == {len(prompt) + max_tokens}
        assert (logprobs["token_logprobs"][0], logprobs["top_logprobs"][0]) == (None, None)
        for index in range(1, len(ids)):
            expected = log_probabilities(ids[:index])
            assert logprobs["token_logprobs"][index] == pytest.approx(float(expected[ids[index]]), abs=1e-4)
            assert max(logprobs["top_logprobs"][index].values()) == pytest.approx(float(expected.max()), abs=1e-4)
        for name, offset in zip(logprobs["tokens"], logprobs["text_offset"], strict=True):
            assert name.startswith("bytes:") or choice["text"][offset:].startswith(name)
        for index in (2 * choice["index"], 2 * choice["index"] + 1):
            chunks = [chunk for chunk in stream.choices if chunk["index"] == index]
            assert stream.text(index) == choice["text"]
            streamed = joined([chunk["logprobs"] for chunk in chunks if chunk["logprobs"]])
            for name in ("tokens", "text_offset"):
                assert streamed[name] == logprobs[name]
            assert streamed["token_logprobs"][1:] == pytest.approx(logprobs["token_logprobs"][1:], abs=1e-4)


async def test_a_result_s_tokens_have_no_log_probability(tooled: Gateway) -> None:
    [choice] = (await tooled.complete("Sum:", logprobs=0))["choices"]
    logprobs = choice["logprobs"]
    assert "".join(logprobs["tokens"]) == choice["text"] + "<|endoftext|>" == DONE + "<|endoftext|>"
    spliced = [
        token for token, value in zip(logprobs["tokens"], logprobs["token_logprobs"], strict=True) if value is None
    ]
    assert "".join(spliced) == " 408]"
    assert [top is None for top in logprobs["top_logprobs"]] == [v is None for v in logprobs["token_logprobs"]]
    assert all(len(top) == 1 for top in logprobs["top_logprobs"] if top)
    [hidden] = (await tooled.complete("Sum:", logprobs=0, show_calls=False))["choices"]
    assert "".join(hidden["logprobs"]["tokens"]) == hidden["text"] + "<|endoftext|>"
    assert hidden["text"] == " It is 408 books."
    assert [hidden["text"][offset:][:1] for offset in hidden["logprobs"]["text_offset"]] == [
        *(token[0] for token in hidden["logprobs"]["tokens"][:-1]),
        "",
    ]


async def test_a_prompt_alone_can_be_asked_for(plain: Gateway) -> None:
    answer = await plain.complete(["Plain:", "Sum:"], max_tokens=0, echo=True)
    assert [(choice["text"], choice["finish_reason"]) for choice in answer["choices"]] == [
        ("Plain:", "length"),
        ("Sum:", "length"),
    ]
    assert answer["usage"]["completion_tokens"] == 0
    assert (await plain.stream("Plain:", max_tokens=0, echo=True)).text() == "Plain:"


async def test_each_field_reaches_the_completion() -> None:
    registry = tools_at({})
    fields = {
        "prompt": [[5, 6]],
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.25,
        "top_k": 7,
        "presence_penalty": 0.125,
        "frequency_penalty": -1,
        "logit_bias": {"3": -100, "4": 1.5},
        "seed": 2**63 - 1,
        "stop": "END",
        "include_stop_str_in_output": True,
        "n": 2,
        "best_of": 2,
        "echo": True,
        "logprobs": 20,
        "tools": ["Calendar"],
        "api_top_k": 4,
        "max_calls": 3,
        "max_cost": 2.5,
        "tool_timeout": 1.5,
        "show_calls": False,
        "user": "somebody",
        "suffix": "",
    }
    backend = scripted_backend()
    settings = GatewaySettings(completion_timeout=33)
    async with ToolClient(registry) as tools:
        body = CompletionBody.model_validate(fields)
        planned = await plan(body, Completer(backend, registry, tools), settings, request_id="r-1")
        bare = await plan(
            CompletionBody.model_validate({"prompt": "a", "plain": True, "top_k": -1}),
            Completer(backend, registry, tools),
            settings,
            request_id="r-2",
        )
    sampling = SamplingParams(0.5, 0.25, 7, 2**63 - 1, -1.0, 0.125, ((3, -100.0), (4, 1.5)))
    expected = CompletionRequest(
        prompt_ids=(5, 6),
        max_tokens=9,
        sampling=sampling,
        stop=("END",),
        include_stop=True,
        tools=("Calendar",),
        api_top_k=4,
        max_calls=3,
        max_cost=2.5,
        tool_timeout=1.5,
        timeout=33.0,
        show_calls=False,
        request_id="r-1",
        logprobs=20,
        prompt_logprobs=True,
    )
    first, second = (choice.request for choice in planned.choices)
    assert first == expected
    assert second == dataclasses.replace(expected, sampling=dataclasses.replace(sampling, seed=-(2**63)))
    [plain] = (choice.request for choice in bare.choices)
    assert (plain.plain, plain.tools, plain.sampling.top_k, plain.prompt_logprobs) == (True, (), 0, False)


async def test_fields_of_other_servers_pass_with_values_that_change_nothing(plain: Gateway) -> None:
    neutral: dict[str, Any] = {name: next(iter(entry.values), None) for name, entry in NEUTRAL.items()}
    ignored: dict[str, Any] = dict.fromkeys(IGNORED, "anything")
    own = {"repetition_penalty": 1.0, "min_p": 0.0, "min_tokens": 0, "ignore_eos": False, "stop_token_ids": []}
    for fields in (neutral, ignored, own, dict.fromkeys([*neutral, *ignored, *own]), {"best_of": 1, "n": 2}):
        answer = await plain.complete("Plain:", **fields)
        assert {choice["text"] for choice in answer["choices"]} == {" a plain text."}


async def test_no_tool_is_called_where_the_choice_is_none(tooled: Gateway) -> None:
    [choice] = (await tooled.complete("Sum:", tool_choice="none"))["choices"]
    assert choice["tool_calls"] == []
    [choice] = (await tooled.complete("Sum:", tool_choice="auto"))["choices"]
    assert [call["tool"] for call in choice["tool_calls"]] == ["Calculator"]


async def test_the_end_of_the_text_can_be_ignored_put_off_and_moved(plain: Gateway) -> None:
    words = small_tokenizer().encode(" a plain text.")
    [usual] = (await plain.complete("Plain:", return_token_ids=True))["choices"]
    assert (usual["token_ids"], usual["finish_reason"]) == (words, "stop")
    answer = await plain.complete("Plain:", ignore_eos=True, max_tokens=30)
    [choice] = answer["choices"]
    assert (choice["text"], choice["finish_reason"]) == (" a plain text.", "length")
    assert answer["usage"]["completion_tokens"] == 30
    [choice] = (await plain.complete("Plain:", stop_token_ids=[words[2]], return_token_ids=True))["choices"]
    assert (choice["token_ids"], choice["finish_reason"]) == (words[:2], "stop")
    assert choice["text"] == small_tokenizer().decode(words[:2])
    kept = {"stop_token_ids": [words[2]], "include_stop_str_in_output": True}
    [choice] = (await plain.complete("Plain:", return_token_ids=True, **kept))["choices"]
    assert (choice["token_ids"], choice["finish_reason"]) == (words[:3], "stop")
    assert choice["text"] == small_tokenizer().decode(words[:3]) == (await plain.stream("Plain:", **kept)).text()
    [choice] = (await plain.complete("Plain:", include_stop_str_in_output=True, return_token_ids=True))["choices"]
    assert choice["token_ids"] == words  # the end of the text has no text
    # A stop string that ends within the first tokens does not count.
    [choice] = (await plain.complete("Long:", stop=["on"], min_tokens=20))["choices"]
    [cut] = (await plain.complete("Long:", stop=["on"]))["choices"]
    assert cut["text"] == " "
    assert len(small_tokenizer().encode(choice["text"])) >= 20
    assert choice["text"].startswith(" on and on on and on")


async def test_a_stop_token_inside_a_call_does_not_end_the_text(tooled: Gateway) -> None:
    inside = small_tokenizer().encode(" [Calculator(24 * 17) ->")[-2]
    [choice] = (await tooled.complete("Sum:", stop_token_ids=[inside]))["choices"]
    assert choice["text"] == DONE


async def test_repetition_and_least_length_change_what_the_engine_chooses() -> None:
    """On the real sampler with a model of random weights: each field against a plain recomputation."""
    fields = {"max_tokens": 12, "tools": [], "return_token_ids": True}
    async with gateway(make=random_backend) as running:
        [choice] = (await running.complete("Each of the", **fields, repetition_penalty=1.7))["choices"]
        [same] = (await running.complete("Each of the", **fields, temperature=1.0, seed=1, min_p=1.0))["choices"]
        [greedy] = (await running.complete("Each of the", **fields))["choices"]
    ids = list(choice["prompt_token_ids"])
    for token in choice["token_ids"]:
        logits = raw_logits(ids)
        there = torch.tensor(sorted(set(ids)))
        logits[there] = torch.where(logits[there] > 0, logits[there] / 1.7, logits[there] * 1.7)
        assert logits[token] == pytest.approx(float(logits.max()), abs=1e-4)
        ids.append(token)
    assert same["token_ids"] == greedy["token_ids"]
    assert len(set(choice["token_ids"])) > len(set(greedy["token_ids"]))


async def test_usage_can_come_with_every_chunk(plain: Gateway) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    stream = await plain.stream(["Plain:", "Long:"], stream_options=options, max_tokens=20)
    counts = [chunk["usage"]["completion_tokens"] for chunk in stream.chunks]
    assert counts == sorted(counts)
    assert (counts[0] < counts[-1], stream.chunks[-1]["choices"]) == (True, [])
    whole = await plain.complete(["Plain:", "Long:"], max_tokens=20)
    assert stream.chunks[-1]["usage"] == whole["usage"] | {
        "prompt_tokens_details": stream.chunks[-1]["usage"]["prompt_tokens_details"]
    }
