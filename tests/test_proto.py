"""The wire contract: generated code is current, and REST speaks the JSON mapping of the messages (proto/README.md)."""

import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from inference_gateway.serving.protocol import CompletionBody, ToolContext
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import gateway, serving
from toolformer.v1 import completion_pb2

ROOT = Path(__file__).parents[1]
M = TypeVar("M", bound=Message)


def test_generated_code_is_current(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "proto/generate.py", tmp_path], check=True, cwd=ROOT / "proto")
    made = {path.name: path.read_text() for path in tmp_path.glob("toolformer/v1/*")}
    kept = {path.name: path.read_text() for path in (ROOT / "toolformer/v1").glob("*_pb2*")}
    assert made == kept, "run `make proto`"


def without_null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_null(one) for name, one in value.items() if one is not None}
    return list(map(without_null, value)) if isinstance(value, list) else value


def as_json(message: Message) -> dict[str, Any]:
    """The mapping of ``message`` as REST would send it: names as in the file, numbers and empty lists written out."""
    fields = json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    assert isinstance(fields, dict)
    return fields


def assert_mapped(rest: dict[str, Any], message: M) -> M:
    """``message``, read from ``rest``, which is its mapping with nulls for what has no value."""
    assert set(rest) == {field.name for field in message.DESCRIPTOR.fields}
    read = json_format.ParseDict(rest, message)
    assert as_json(read) == without_null(rest)
    assert json_format.Parse(json_format.MessageToJson(read), type(message)()) == read
    return read


async def test_the_gateways_calls_and_counts_are_mapped() -> None:
    async with serving(calculator()) as url, gateway({"Calculator": url}) as running:
        whole = await running.complete("Sum:")
        stream = await running.stream("Sum:", stream_tool_events=True, stream_options={"include_usage": True})
        failed = await running.complete("Day:")  # nobody listens there
    assert_mapped(whole["usage"], completion_pb2.Usage())
    assert assert_mapped(whole["choices"][0]["tool_calls"][0], completion_pb2.ToolCall()).output == "408"
    assert assert_mapped(failed["choices"][0]["tool_calls"][0], completion_pb2.ToolCall()).HasField("error")

    tool_events = [choice["tool_event"] for choice in stream.choices if "tool_event" in choice]
    kinds = [event.pop("type") for event in tool_events]
    assert kinds == ["call_started", "call_finished"]
    assert_mapped(tool_events[0], completion_pb2.CallStarted())
    assert_mapped(tool_events[1], completion_pb2.ToolCall())
    events = [
        json_format.ParseDict({kind: event}, completion_pb2.CompletionEvent())
        for kind, event in zip(kinds, tool_events, strict=True)
    ]
    assert [event.WhichOneof("event") for event in events] == kinds

    terminal = stream.terminals()[0]
    finished = {name: terminal[name] for name in ("finish_reason", "timed_out", "tool_calls")}
    assert_mapped({**finished, "usage": stream.chunks[-1]["usage"]}, completion_pb2.Finished())


def test_the_mapping_of_a_request_is_a_body_that_rest_takes() -> None:
    request = completion_pb2.CompletionRequest(
        prompt="Sum:",
        model="scripted",
        max_tokens=40,
        temperature=1.0,
        top_p=0.5,
        top_k=3,
        seed=-7,
        presence_penalty=0.5,
        frequency_penalty=-0.5,
        logit_bias={7: -100, 9: 0.5},
        stop=["end", "\n"],
        include_stop_str_in_output=True,
        logprobs=2,
        return_token_ids=True,
        api_top_k=5,
        max_calls=2,
        tool_timeout=1.5,
        show_calls=False,
        tool_context=completion_pb2.CallContext(date="2026-11-20"),
        plain=False,
        repetition_penalty=1.5,
        min_p=0.25,
        min_tokens=3,
        ignore_eos=True,
        stop_token_ids=[5, 6],
        stop_at="sentence",
        max_cost=2.5,
        tool_prompting=True,
    )
    request.tools.extend(["Calculator"])
    fields = as_json(request)
    only_here = {"prompt_token_ids"}
    assert fields.pop("prompt_token_ids") == []
    assert set(fields) | only_here == {field.name for field in request.DESCRIPTOR.fields}, "this test sets every field"
    assert json_format.ParseDict(fields, completion_pb2.CompletionRequest()) == request
    body = CompletionBody.model_validate(fields)
    assert (body.prompt, body.seed, dict(body.logit_bias)) == (("Sum:",), -7, {7: -100.0, 9: 0.5})
    assert (body.stop, body.tools, body.show_calls) == (("end", "\n"), ["Calculator"], False)
    assert body.tool_context == ToolContext.model_validate({"date": "2026-11-20"})

    rest_only = {"prompt", "n", "echo", "stream", "stream_options", "stream_tool_events"}
    rest_only |= {"return_tokens_as_token_ids"}
    assert CompletionBody.model_fields.keys() - set(fields) == rest_only - {"prompt"}


@pytest.mark.parametrize(("rest", "names"), [({}, None), ({"tools": []}, []), ({"tools": ["MT"]}, ["MT"])])
def test_no_tools_and_no_word_about_tools_stay_different(rest: dict[str, Any], names: list[str] | None) -> None:
    request = json_format.ParseDict({"prompt": "Sum:", **rest}, completion_pb2.CompletionRequest())
    fields = json_format.MessageToDict(request, preserving_proto_field_name=True)
    assert CompletionBody.model_validate(fields).tools == names
