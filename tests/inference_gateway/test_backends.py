"""One behaviour on every backend: the same model behind the local engine and behind each kind of server gives the same
text, token ids, calls and counts."""

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

import pytest

from inference_gateway.backends.model_server import Segment
from inference_gateway.backends.openai_wire import Dialect, body_of
from inference_gateway.completion import Completer
from inference_gateway.core import SamplingParams
from inference_gateway.serving.planning import plan
from inference_gateway.serving.protocol import CompletionBody
from inference_gateway.settings import GatewaySettings
from services.calculator.app import build_app as calculator
from tests.inference_gateway.backend_harness import NO_CIRCUIT, SERVERS, remote, run_prompt, started
from tests.inference_gateway.http_harness import serving, tools_at
from tests.support.vocabularies import small_tokenizer
from toolformer.http_api import ApiError
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
    "a tool that is not offered": ("Sum:", {"tools": ("Calendar",)}),
    "a tool that is not offered, with penalties": (
        "Sum:",
        {"tools": ("Calendar", "QA"), "sampling": SamplingParams(frequency_penalty=0.5, logit_bias=((7, 1.0),))},
    ),
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
    "the context's end",
    "bare",
]
NAMES_FORCED: Final = [
    "brackets that are no calls",
    "a tool that is not offered",
    "a tool that is not offered, with penalties",
]
LIKELY_START: Final = {"a likely start": ("Each:", {}), "a start not likely enough": ("Each:", {"api_top_k": 3})}


@pytest.mark.parametrize("tool_is_up", [True, False], ids=["tool up", "tool down"])
@pytest.mark.parametrize("kind", SERVERS)
async def test_every_backend_returns_the_same(kind: str, tool_is_up: bool) -> None:
    # Without log probabilities a start that is merely likely cannot be seen, and no token can be banned.
    cases = {name: CASES[name] for name in NEVER_BANNED} if kind == "bare" else CASES | LIKELY_START
    if kind == "tgi":  # it takes no biases, so no name can be forced on the model
        cases = {name: case for name, case in cases.items() if name not in NAMES_FORCED}
    called = 0
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(calculator())) if tool_is_up else None
        tools, down = tools_at({"Calculator": url} if url else {}), not tool_is_up
        client = await stack.enter_async_context(ToolClient(tools, NO_CIRCUIT))
        local = Completer(await stack.enter_async_context(started("local")), tools, client)
        other = Completer(await stack.enter_async_context(started(kind)), tools, client)
        for name, (prompt, fields) in cases.items():
            expected = await run_prompt(local, prompt, **fields)
            if kind == "bare" and down and expected.calls:
                continue
            result = await run_prompt(other, prompt, **fields)
            assert result.text == expected.text, name
            assert result.calls == expected.calls, name
            assert result.end == expected.end, name
            if kind not in ("bare", "llamacpp"):
                assert result.ids == expected.ids, name
            called += len(result.calls)
    assert called >= (0 if kind == "bare" and down else 4)


async def test_a_server_without_biases_writes_a_banned_call_as_text() -> None:
    tools = tools_at({})
    async with ToolClient(tools) as client, remote("bare") as backend:
        result = await run_prompt(Completer(backend, tools, client), "Sum:", max_tokens=20)
        assert [error for _, _, _, error, _ in result.calls] == ["unreachable"]
        assert result.text.startswith(" It is [Calculator(24 * 17)")


ALL_FIELDS = SamplingParams(repetition_penalty=1.5, min_p=0.25, min_tokens=3, ignore_eos=True, stop_token_ids=(5,))


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (
            "vllm",
            {"repetition_penalty": 1.5, "min_p": 0.25, "min_tokens": 3, "ignore_eos": True, "stop_token_ids": [5]},
        ),
        ("llamacpp", {"repeat_penalty": 1.5, "repeat_last_n": 7, "min_p": 0.25, "ignore_eos": True}),
        ("bare", {}),
    ],
)
def test_a_server_is_sent_the_sampling_fields_it_has_by_its_own_names(kind: str, sent: dict[str, Any]) -> None:
    segment = Segment((1, 2), 5, replace(ALL_FIELDS, min_tokens=3 if kind == "vllm" else 0))
    usual = body_of(Segment((1, 2), 5, SamplingParams()), Dialect("m", kind), small_tokenizer())
    body = body_of(segment, Dialect("m", kind), small_tokenizer())
    assert {name: value for name, value in body.items() if name not in usual} == sent


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        ("vllm", []),
        ("llamacpp", ["min_tokens"]),
        ("tgi", ["ignore_eos", "min_p", "min_tokens"]),
        ("bare", ["ignore_eos", "min_p", "min_tokens", "repetition_penalty"]),
    ],
)
async def test_a_sampling_field_that_the_server_has_not_is_refused_by_name(kind: str, missing: list[str]) -> None:
    fields = {"repetition_penalty": 1.5, "min_p": 0.25, "min_tokens": 3, "ignore_eos": True, "stop_token_ids": [5]}
    async with remote(kind) as backend, ToolClient(tools_at({})) as tools:
        completer = Completer(backend, tools_at({}), tools)
        refused = []
        for name, value in fields.items():
            body = CompletionBody.model_validate({"prompt": "Text", name: value})
            try:
                await plan(body, completer, GatewaySettings(), request_id="r")
            except ApiError as error:
                assert (error.status, error.code) == (400, "unsupported_parameter")  # noqa: PT017
                refused.append(error.param)
    assert sorted(filter(None, refused)) == missing
