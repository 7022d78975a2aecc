"""``POST /v1/completions`` answered as JSON."""

from typing import Any

import pytest

from tests.inference_gateway.http_harness import Gateway
from tests.support.vocabularies import small_tokenizer

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_call_is_made_in_the_middle_of_the_text(tooled: Gateway) -> None:
    answer = await tooled.complete("Sum:")
    [choice] = answer["choices"]
    assert choice["text"] == " It is [Calculator(24 * 17) -> 408] 408 books."
    assert (choice["finish_reason"], choice["timed_out"], choice["logprobs"]) == ("stop", False, None)
    [call] = choice["tool_calls"]
    assert call.pop("duration_ms") > 0
    assert call == {"tool": "Calculator", "input": "24 * 17", "output": "408", "error": None, "offset": len(" It is")}
    assert answer["id"].startswith("cmpl-")
    assert (answer["object"], answer["model"]) == ("text_completion", "scripted")
    usage = answer["usage"]
    encode = small_tokenizer().encode
    assert usage["prompt_tokens"] == len(encode("Sum:"))
    assert usage["tool_tokens"] == len(encode(" 408") + encode("]"))
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 0}
    assert usage["rolled_back_tokens"] == 0


@pytest.mark.parametrize("fields", [{"tools": []}, {"tools": ["Calendar"]}, {"api_top_k": 0}, {"max_calls": 0}])
async def test_calls_can_be_forbidden(tooled: Gateway, fields: dict[str, Any]) -> None:
    [choice] = (await tooled.complete("Sum:", **fields))["choices"]
    assert choice["tool_calls"] == []
    assert "->" not in choice["text"] or fields == {"tools": ["Calendar"]}


async def test_more_than_one_call_where_allowed(tooled: Gateway) -> None:
    [one] = (await tooled.complete("Two:"))["choices"]
    [both] = (await tooled.complete("Two:", max_calls=2))["choices"]
    assert [call["output"] for call in one["tool_calls"]] == ["2"]
    assert [call["output"] for call in both["tool_calls"]] == ["2", "4"]
    for call in both["tool_calls"]:
        assert both["text"][call["offset"] :].startswith(f" [Calculator({call['input']}) -> {call['output']}]")


async def test_a_repeated_call_is_reported_and_taken_back(tooled: Gateway) -> None:
    answer = await tooled.complete("Same:", max_calls=3)
    [choice] = answer["choices"]
    assert [(call["output"], call["error"]) for call in choice["tool_calls"]] == [
        ("9", None),
        (None, "repeated_call: the same call was made before in this completion"),
    ]
    assert choice["text"] == " So [Calculator(3 * 3) -> 9] or not."
    assert answer["usage"]["rolled_back_tokens"] > 0


async def test_a_tool_that_is_down_takes_nothing_from_the_completion(plain: Gateway) -> None:
    [choice] = (await plain.complete("Sum:"))["choices"]
    assert choice["text"] == " It is unknown."
    [call] = choice["tool_calls"]
    assert call["output"] is None
    assert call["error"].startswith("unreachable: ")
    assert call["offset"] == len(" It is")


async def test_several_prompts_and_several_choices_come_in_order(tooled: Gateway) -> None:
    ids = small_tokenizer().encode("Plain:")
    answer = await tooled.complete(["Sum:", "Plain:"], n=2)
    texts = [choice["text"] for choice in answer["choices"]]
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert texts[0] == texts[1] == " It is [Calculator(24 * 17) -> 408] 408 books."
    assert texts[2] == texts[3] == " a plain text."
    assert answer["usage"]["prompt_tokens"] == len(small_tokenizer().encode("Sum:")) + len(ids)
    assert (await tooled.complete(ids))["choices"][0]["text"] == " a plain text."
    assert [choice["text"] for choice in (await tooled.complete([ids, ids]))["choices"]] == [" a plain text."] * 2


async def test_echo_begins_with_the_prompt_and_moves_the_offsets(tooled: Gateway) -> None:
    ids = small_tokenizer().encode("Sum:")
    for prompt in ("Sum:", ids):
        [choice] = (await tooled.complete(prompt, echo=True))["choices"]
        assert choice["text"] == "Sum: It is [Calculator(24 * 17) -> 408] 408 books."
        assert choice["text"][choice["tool_calls"][0]["offset"] :].startswith(" [Calculator(")


async def test_the_number_of_tokens_is_kept(plain: Gateway) -> None:
    answer = await plain.complete("Long:", max_tokens=7)
    assert (answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == ("length", 7)
    default = await plain.complete("Long:", max_tokens=None)
    assert default["usage"]["completion_tokens"] == 16


async def test_null_and_neutral_values_mean_the_default(plain: Gateway) -> None:
    nulls = dict.fromkeys(
        ("model", "temperature", "top_p", "seed", "stop", "n", "echo", "stream", "stream_options", "user", "tools")
    )
    neutral = {
        "best_of": 1,
        "logit_bias": {},
        "presence_penalty": 0,
        "frequency_penalty": 0.0,
        "suffix": "",
        "logprobs": None,
    }
    ours = dict.fromkeys(("api_top_k", "max_calls", "tool_timeout", "show_calls", "stream_tool_events", "tool_context"))
    answer = await plain.complete("Plain:", **nulls, **neutral, **ours)
    assert answer["choices"][0]["text"] == " a plain text."
