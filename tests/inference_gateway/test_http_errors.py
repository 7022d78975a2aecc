"""Bad input: the right status, the one error shape, the field's name and the remedy; and nothing in the log."""

import json
import logging
from typing import Any

import httpx
import pytest

from tests.inference_gateway.http_harness import Gateway
from tests.support.cases import cases

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
    body: dict[str, Any] = error
    return body


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Any:
    """A client's mistake is no event for the operator beyond its access line."""
    caplog.set_level(logging.INFO)
    yield
    own = ("inference_gateway", "toolformer.http_api", "uvicorn.error", "asyncio")
    said = [(record.name, record.getMessage()) for record in caplog.records if record.levelno >= logging.INFO]
    assert [line for line in said if line[0].startswith(own) and "ready: model" not in line[1]] == []


@pytest.mark.parametrize(
    ("fields", "status", "param", "code", "message"),
    [
        *cases(__file__, "fields"),
        ({"prompt": None}, 422, "prompt", "invalid_value", "list of strings"),
        ({"prompt": "\ud83d half"}, 422, "prompt", "invalid_value", "surrogate"),
        ({"prompt": [[1], [5, 10**30]]}, 422, "prompt.1.1", "unknown_token", "no token so large a number"),
        ({"prompt": ["Plain:"] * 17}, 422, "prompt", "too_many_choices", "at most 16"),
        ({"prompt": "x" * 1000}, 400, "prompt", TOO_LONG, "the prompt has 1,000: shorten it to 255"),
        ({"prompt": "x" * 900_000}, 400, "prompt", TOO_LONG, "or more: shorten it to"),
        ({"prompt": [5] * 256}, 400, "prompt", TOO_LONG, "the prompt has 256"),
        ({"seed": 2**63}, 422, "seed", "invalid_value", "less than"),
        ({"stop": "s" * 257}, 422, "stop", "invalid_value", "1 to 256 characters"),
        ({"tools": [FUNCTION]}, 422, "tools", "invalid_value", 'a list of names, such as ["Calculator"]'),
        ({"stop_token_ids": [5] * 65}, 422, "stop_token_ids", "invalid_value", "at most 64"),
    ],
)
async def test_a_wrong_field(
    plain: Gateway, fields: dict[str, Any], status: int, param: str, code: str, message: str
) -> None:
    content = json.dumps({**OK, **fields})
    response = await plain.http.post("/v1/completions", content=content, headers={"Content-Type": "application/json"})
    error = checked(response, status)
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    assert message in error["message"]
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
    ("fields", "param", "message"),
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
    plain: Gateway, fields: dict[str, Any], param: str, message: str
) -> None:
    error = checked(await plain.http.post("/v1/completions", json={**OK, **fields}), 422)
    assert error["param"] == param
    assert message in error["message"]
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
