"""Bad input: the right status, the one error shape, the field's name and the remedy; and nothing in the log."""

import json
import logging
from typing import Any

import httpx
import pytest

from tests.inference_gateway.http_harness import Gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

OK = {"prompt": "Plain:"}
FUNCTION = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}
TOO_LONG = "context_length_exceeded"


def checked(response: httpx.Response, status: int) -> dict[str, Any]:
    """The error of ``response``, whose shape is checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    [(name, error)] = response.json().items()
    assert (name, set(error)) == ("error", {"message", "type", "param", "code"})
    assert response.headers["x-request-id"]
    told: dict[str, Any] = error
    return told


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """A client's mistake is no event for the operator beyond its access line."""
    caplog.set_level(logging.INFO)
    yield
    own = ("inference_gateway", "toolformer.http_api", "uvicorn.error", "asyncio")
    said = [(record.name, record.getMessage()) for record in caplog.records if record.levelno >= logging.INFO]
    assert [line for line in said if line[0].startswith(own) and "ready: model" not in line[1]] == []


@pytest.mark.parametrize(
    ("fields", "status", "param", "code", "told"),
    [
        ({"prompt": None}, 422, "prompt", "invalid_value", "list of strings"),
        ({"prompt": ""}, 422, "prompt", "invalid_value", "must not be empty"),
        ({"prompt": []}, 422, "prompt", "invalid_value", "must not be empty"),
        ({"prompt": ["Plain:", ""]}, 422, "prompt", "invalid_value", "must not be empty"),
        ({"prompt": [[]]}, 422, "prompt", "invalid_value", "must not be empty"),
        ({"prompt": ["Plain:", 5]}, 422, "prompt", "invalid_value", "list of token ids"),
        ({"prompt": {"text": "Plain:"}}, 422, "prompt", "invalid_value", "must be a string"),
        ({"prompt": [1.5]}, 422, "prompt", "invalid_value", "list of token ids"),
        ({"prompt": [True]}, 422, "prompt", "invalid_value", "list of token ids"),
        ({"prompt": "\ud83d half"}, 422, "prompt", "invalid_value", "surrogate"),
        ({"prompt": [1, 2, 407]}, 422, "prompt.2", "unknown_token", "no token 407, as index 2 has it"),
        ({"prompt": [1, -2]}, 422, "prompt.1", "unknown_token", "the model's are 0 to 406"),
        ({"prompt": [[1], [5, 10**30]]}, 422, "prompt.1.1", "unknown_token", "no token so large a number"),
        ({"prompt": ["Plain:"] * 17}, 422, "prompt", "too_many_choices", "at most 16"),
        ({"n": 17}, 422, "n", "too_many_choices", "at most 16"),
        ({"n": 0}, 422, "n", "invalid_value", "greater than or equal to 1"),
        ({"max_tokens": -1}, 422, "max_tokens", "invalid_value", "greater than or equal to 0"),
        ({"max_tokens": 0}, 422, "max_tokens", "invalid_value", "'echo': true"),
        ({"max_tokens": "many"}, 422, "max_tokens", "invalid_value", "valid integer"),
        ({"max_tokens": 255}, 400, "max_tokens", TOO_LONG, "at most 256 tokens"),
        ({"prompt": "x" * 1000}, 400, "prompt", TOO_LONG, "the prompt has 1,000: shorten it to 255"),
        ({"prompt": "x" * 900_000}, 400, "prompt", TOO_LONG, "or more: shorten it to"),
        ({"prompt": [5] * 256}, 400, "prompt", TOO_LONG, "the prompt has 256"),
        ({"temperature": 2.1}, 422, "temperature", "invalid_value", "less than or equal to 2"),
        ({"temperature": -0.1}, 422, "temperature", "invalid_value", "greater than or equal to 0"),
        ({"top_p": 0}, 422, "top_p", "invalid_value", "greater than 0"),
        ({"seed": 2**63}, 422, "seed", "invalid_value", "less than"),
        ({"stop": ["a", "b", "c", "d", "e"]}, 422, "stop", "invalid_value", "at most 4"),
        ({"stop": [""]}, 422, "stop", "invalid_value", "1 to 256 characters"),
        ({"stop": "s" * 257}, 422, "stop", "invalid_value", "1 to 256 characters"),
        ({"stop": 7}, 422, "stop", "invalid_value", "must be a string"),
        ({"stream": "yes"}, 422, "stream", "invalid_value", "valid boolean"),
        ({"stream_options": {"include_usage": True}}, 422, "stream_options", "invalid_value", "'stream': true"),
        ({"stream_tool_events": True}, 422, "stream_tool_events", "invalid_value", "'stream': true"),
        (
            {"stream": True, "stream_options": {"usage": True}},
            422,
            "stream_options.usage",
            "invalid_value",
            "not a known",
        ),
        ({"model": "gpt-j"}, 404, "model", "model_not_found", "serves 'scripted'"),
        ({"tools": ["Calculater"]}, 422, "tools", "unknown_tool", "the tools are: Calculator, "),
        ({"tools": "Calculator"}, 422, "tools", "invalid_value", "valid list"),
        ({"tools": [3]}, 422, "tools.0", "invalid_value", "valid string"),
        ({"tools": [FUNCTION]}, 422, "tools", "invalid_value", 'a list of names, such as ["Calculator"]'),
        ({"api_top_k": 1001}, 422, "api_top_k", "invalid_value", "less than or equal to 1000"),
        ({"max_calls": -1}, 422, "max_calls", "invalid_value", "greater than or equal to 0"),
        ({"max_call": 1}, 422, "max_call", "invalid_value", "not a known field; did you mean 'max_calls'?"),
        ({"tool_timeout": 0}, 422, "tool_timeout", "invalid_value", "greater than 0"),
        ({"tool_context": {"date": "2026-13-01"}}, 422, "tool_context.date", "invalid_value", "YYYY-MM-DD"),
        ({"tool_context": {"date": 1}}, 422, "tool_context.date", "invalid_value", "YYYY-MM-DD"),
        ({"tool_context": {"day": "2026-11-20"}}, 422, "tool_context.day", "invalid_value", "not a known field"),
        ({"logprobs": 21}, 422, "logprobs", "invalid_value", "less than or equal to 20"),
        ({"logprobs": -1}, 422, "logprobs", "invalid_value", "greater than or equal to 0"),
        ({"logprobs": True}, 422, "logprobs", "invalid_value", "valid integer"),
        ({"best_of": 3}, 400, "best_of", "unsupported_parameter", "the same as n (1)"),
        ({"best_of": 3, "n": 2}, 400, "best_of", "unsupported_parameter", "the same as n (2)"),
        ({"response_format": {"type": "json_object"}}, 400, "response_format", "unsupported_parameter", "no grammar"),
        (
            {"tool_choice": "required"},
            400,
            "tool_choice",
            "unsupported_parameter",
            "name the tools it may call in 'tools'",
        ),
        ({"guided_json": {}}, 400, "guided_json", "unsupported_parameter", "no grammar"),
        ({"use_beam_search": True}, 400, "use_beam_search", "unsupported_parameter", "several choices with 'n'"),
        ({"length_penalty": True}, 400, "length_penalty", "unsupported_parameter", "leave it out"),
        ({"repeat_penalty": 1.1}, 400, "repeat_penalty", "unsupported_parameter", "use 'repetition_penalty'"),
        ({"max_completion_tokens": 5}, 400, "max_completion_tokens", "unsupported_parameter", "use 'max_tokens'"),
        ({"repetition_penalty": 0}, 422, "repetition_penalty", "invalid_value", "greater than or equal to 0.01"),
        ({"min_p": 1.5}, 422, "min_p", "invalid_value", "less than or equal to 1"),
        (
            {"min_tokens": 17},
            422,
            "min_tokens",
            "invalid_value",
            "more than the 16 that may be made; raise 'max_tokens'",
        ),
        ({"min_tokens": -1}, 422, "min_tokens", "invalid_value", "greater than or equal to 0"),
        ({"ignore_eos": "yes"}, 422, "ignore_eos", "invalid_value", "valid boolean"),
        ({"stop_token_ids": [5, 407]}, 422, "stop_token_ids.1", "unknown_token", "no token 407"),
        ({"stop_token_ids": [-1]}, 422, "stop_token_ids.0", "unknown_token", "the model's are 0 to 406"),
        ({"stop_token_ids": [5] * 65}, 422, "stop_token_ids", "invalid_value", "at most 64"),
        ({"stop_token_id": [5]}, 422, "stop_token_id", "invalid_value", "did you mean 'stop_token_ids'?"),
        ({"colour": 1}, 422, "colour", "invalid_value", "not a known field; remove it"),
        (
            {"stream": True, "stream_options": {"continuous_usage_stats": True}},
            422,
            "stream_options.continuous_usage_stats",
            "invalid_value",
            "'include_usage': true",
        ),
        ({"suffix": "."}, 400, "suffix", "unsupported_parameter", "leave it out"),
        ({"logit_bias": {"407": 1}}, 422, "logit_bias.407", "unknown_token", "no token 407; the model's are 0 to 406"),
        ({"logit_bias": {"-1": 1}}, 422, "logit_bias", "invalid_value", "'-1' is no token id"),
        ({"logit_bias": {"the": 1}}, 422, "logit_bias", "invalid_value", "'the' is no token id"),
        ({"logit_bias": {"5": 101}}, 422, "logit_bias", "invalid_value", "from -100 to 100"),
        ({"logit_bias": {"5": True}}, 422, "logit_bias", "invalid_value", "must be a number"),
        ({"logit_bias": [[5, 1]]}, 422, "logit_bias", "invalid_value", "must be an object"),
        ({"presence_penalty": 2.5}, 422, "presence_penalty", "invalid_value", "less than or equal to 2"),
        ({"frequency_penalty": -3}, 422, "frequency_penalty", "invalid_value", "greater than or equal to -2"),
        ({"top_k": -2}, 422, "top_k", "invalid_value", "greater than or equal to -1"),
        ({"plain": True, "tools": ["Calculator"]}, 422, "tools", "invalid_value", "leave one of them out"),
    ],
)
async def test_a_wrong_field(
    plain: Gateway, fields: dict[str, Any], status: int, param: str, code: str, told: str
) -> None:
    content = json.dumps({**OK, **fields})
    response = await plain.http.post("/v1/completions", content=content, headers={"Content-Type": "application/json"})
    error = checked(response, status)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    assert told in error["message"]
    assert len(error["message"]) < 400


@pytest.mark.parametrize(
    ("content", "status", "param", "code"),
    [
        (b'{"prompt": "Plain:"', 400, None, "invalid_json"),
        (b"", 422, None, "invalid_value"),
        (b"[1]", 422, None, "invalid_value"),
        (b"{}", 422, "prompt", "invalid_value"),
        (b'{"prompt": "\xff"}', 400, None, "invalid_json"),
        (b'{"prompt": "Plain:", "temperature": NaN}', 422, "temperature", "invalid_value"),
        (b'{"prompt": "Plain:", "tool_timeout": Infinity}', 422, "tool_timeout", "invalid_value"),
        (b'{"prompt": "Plain:", "logit_bias": {"1": NaN}}', 422, "logit_bias", "invalid_value"),
        (b"[" * 100_000, 400, None, "invalid_json"),
        (b'{"prompt": "' + b"x" * 10_000_000 + b'"}', 413, None, "body_too_large"),
    ],
    ids=["cut", "nothing", "list", "empty", "not-utf8", "nan", "infinity", "nan-deep", "nested", "10-mb"],
)
async def test_a_wrong_body(plain: Gateway, content: bytes, status: int, param: str | None, code: str) -> None:
    response = await plain.http.post("/v1/completions", content=content, headers={"Content-Type": "application/json"})
    error = checked(response, status)
    assert (error["param"], error["code"]) == (param, code)


@pytest.mark.parametrize(
    ("fields", "param", "told"),
    [
        ({"tools": [1] * 300_000}, "tools.0", "valid string"),
        ({"tools": ["QA"] * 150_000}, "tools", "at most 256"),
        ({f"{n:x}": 1 for n in range(80_000)}, "0", "not a known field"),
        ({"tool_context": {f"{n:x}": 1 for n in range(80_000)}}, "tool_context.0", "not a known field"),
        ({"prompt": ["a"] * 200_000}, "prompt", "200,000 prompts; send at most 1,024"),
        ({"prompt": [*[1] * 300_000, ""]}, "prompt", "300,001 prompts"),
        ({"stop": ["a"] * 200_000}, "stop", "at most 4"),
    ],
    ids=["numbers", "names", "fields", "fields below", "prompts", "ids and a text", "stops"],
)
async def test_a_body_that_is_wrong_all_through_has_one_error(
    plain: Gateway, fields: dict[str, Any], param: str, told: str
) -> None:
    error = checked(await plain.http.post("/v1/completions", json={**OK, **fields}), 422)
    assert error["param"] == param
    assert told in error["message"]
    assert "more)" not in error["message"]  # an error for each element is what takes seconds and memory


async def test_a_text_that_is_too_long_by_far_is_not_encoded(plain: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    encode = plain.backend.tokenizer.encode

    def noting(text: str) -> list[int]:
        encoded.append(len(text))
        return encode(text)

    monkeypatch.setattr(plain.backend.tokenizer, "encode", noting)
    for text in ("1" * 1_000_000, " the cat" * 120_000):
        error = checked(await plain.http.post("/v1/completions", json={"prompt": ["a", text]}), 400)
        assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")
        assert "or more: shorten it to 255" in error["message"]
    assert encoded == []


async def test_a_streamed_body_that_is_too_large(plain: Gateway) -> None:
    async def endless() -> Any:
        for _ in range(200):
            yield b" " * 65_536

    response = await plain.http.post("/v1/completions", content=endless(), headers={"Content-Type": "application/json"})
    assert checked(response, 413)["code"] == "body_too_large"


async def test_a_wrong_path_or_method(plain: Gateway) -> None:
    assert checked(await plain.http.get("/v1/nothing"), 404)["code"] == "not_found"
    response = await plain.http.get("/v1/completions")
    assert checked(response, 405)["code"] == "method_not_allowed"
    assert response.headers["allow"] == "POST"
    assert checked(await plain.http.get("/v1/models/another"), 404)["code"] == "model_not_found"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_chat_request_is_shown_what_to_send(plain: Gateway, path: str) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "2 + 2?"}], "tools": [FUNCTION]}
    error = checked(await plain.http.post(path, json=body), 404)
    assert error["code"] == "not_found"
    assert "this model completes text and does not chat" in error["message"]
    where, _, shown = error["message"].partition("send POST ")[2].partition(" with ")
    assert checked(await plain.http.get(path), 404)["message"] == error["message"]
    response = await plain.http.post(where, content=shown, headers={"Content-Type": "application/json"})
    assert response.status_code == 200, response.text
