"""The contract of POST /call and POST /calls, held by the factory for whatever engine stands behind it."""

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import APIRouter
from prometheus_client.parser import text_string_to_metric_families

from services.base import Call, NotReady, ToolFailure, create_app
from tests.services.fake_tool import FORGETFUL, INFO, UpperEngine
from tests.toolformer.http_api.asgi import error_of, running, until, until_ready


@pytest.fixture
def engine() -> UpperEngine:
    return UpperEngine()


@pytest.fixture
async def client(engine: UpperEngine) -> AsyncIterator[httpx.AsyncClient]:
    async with running(create_app(INFO, engine)) as client:
        await until_ready(client)
        yield client


async def call(client: httpx.AsyncClient, text: str, **more: Any) -> dict[str, Any]:
    response = await client.post("/call", json={"input": text, **more})
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    assert set(body) == {"tool", "input", "output", "error", "duration_ms"}
    assert body["tool"] == "Upper"
    assert body["input"] == text
    assert body["duration_ms"] >= 0
    return body


@pytest.mark.parametrize("path", ["/health", "/ready", "/metrics", "/tool", "/openapi.json"])
async def test_head_is_wherever_get_is(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.head(path)).status_code == (await client.get(path)).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "a\x00\x07\x1b[31mb", "שלום \u202eabc\u202c مرحبا", "👩‍👩‍👧‍👦🇺🇳", '"quoted" [x] -> (y)\\',
        "line\nbreak\r\n\u2028", "\ufffe\U0010ffff",
    ],
    ids=["empty", "space", "controls", "right to left", "emoji", "marks", "line breaks", "noncharacters"],
)  # fmt: skip
async def test_any_text_goes_through_whole(client: httpx.AsyncClient, engine: UpperEngine, text: str) -> None:
    assert (await call(client, text))["output"] == text.upper()
    assert engine.batches == [[Call(text)]]


async def test_the_context_reaches_an_engine_that_takes_it(client: httpx.AsyncClient, engine: UpperEngine) -> None:
    assert (await call(client, "day", context={"date": "2024-02-29"}))["output"] == "2024-02-29"
    assert (await call(client, "day", context={}))["output"] == "None"
    assert (await call(client, "day", context=None))["output"] == "None"
    assert engine.batches[0] == [Call("day", datetime.date(2024, 2, 29))]


async def test_the_context_is_kept_from_an_engine_that_does_not(engine: UpperEngine) -> None:
    async with running(create_app(FORGETFUL, engine)) as client:
        await until_ready(client)
        assert (await call(client, "day", context={"date": "2024-02-29"}))["output"] == "None"


@pytest.mark.parametrize(
    "date",
    [
        "2026-02-30", "20261120", "2026-11-20T00:00:00", "26-11-20", "tomorrow", "", "٢٠٢٦-١١-٢٠", 0, 20261120,
        ["2026-11-20"],
    ],
)  # fmt: skip
async def test_a_date_that_is_no_day_is_refused(client: httpx.AsyncClient, date: object) -> None:
    response = await client.post("/call", json={"input": "day", "context": {"date": date}})
    assert response.status_code == 422
    error = error_of(response)
    assert error["param"] == "context.date"
    assert "YYYY-MM-DD" in str(error["message"])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"), ({"input": None}, "input"), ({"input": 5}, "input"), ({"input": ["a"]}, "input"),
        ({"input": "a", "inputs": "b"}, "inputs"), ({"input": "a", "context": "today"}, "context"),
        ({"input": "a", "context": {"day": "2026-11-20"}}, "context.day"),
    ],
)  # fmt: skip
async def test_a_malformed_call_is_refused(
    client: httpx.AsyncClient, engine: UpperEngine, body: object, param: str
) -> None:
    for path, sent, at in (("/call", body, param), ("/calls", {"calls": [{"input": "a"}, body]}, f"calls.1.{param}")):
        response = await client.post(path, json=sent)
        assert response.status_code == 422
        assert error_of(response)["param"] == at
    assert engine.batches == []


async def test_a_tool_without_an_answer_says_so_with_200(client: httpx.AsyncClient) -> None:
    body = await call(client, "fail")
    assert body["output"] is None
    assert body["error"] == {"code": "no_answer", "message": "there is none"}


async def test_a_batch_is_answered_together_and_in_order(client: httpx.AsyncClient, engine: UpperEngine) -> None:
    calls: list[dict[str, Any]] = [
        {"input": "a"},
        {"input": "x" * 1_001},
        {"input": "fail"},
        {"input": "b", "context": {"date": "2026-11-20"}},
    ]
    response = await client.post("/calls", json={"calls": calls})
    assert response.status_code == 200
    answers = response.json()["calls"]
    assert [answer["input"] for answer in answers] == [one["input"] for one in calls]
    assert [answer["output"] for answer in answers] == ["A", None, None, "B"]
    codes = [answer["error"] and answer["error"]["code"] for answer in answers]
    assert codes == [None, "input_too_long", "no_answer", None]
    assert engine.batches == [[Call("a"), Call("fail"), Call("b", datetime.date(2026, 11, 20))]]


async def test_an_empty_batch_has_no_answers(client: httpx.AsyncClient, engine: UpperEngine) -> None:
    assert (await client.post("/calls", json={"calls": []})).json() == {"calls": []}
    assert engine.batches == []


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/calls", {"calls": [1] * 1_100}, "calls"),
        ("/calls", {"calls": [1] * 1_000}, "calls.0"),
        ("/call", {"input": "a", **{f"{n:x}": 1 for n in range(100)}}, "0"),
        ("/call", {"input": "a", "context": {f"{n:x}": 1 for n in range(100)}}, "context.0"),
    ],
    ids=["numbers", "a batch of numbers", "unknown fields", "unknown fields below"],
)
async def test_a_body_that_is_wrong_all_through_has_one_error(
    client: httpx.AsyncClient, engine: UpperEngine, path: str, body: object, param: str
) -> None:
    response = await client.post(path, json=body)
    error = error_of(response)
    assert (response.status_code, error["param"]) == (422, param)
    assert "more)" not in str(error["message"])  # an error for each element is what takes seconds and memory
    assert engine.batches == []


async def test_an_input_too_long_is_an_answer_not_a_refusal(client: httpx.AsyncClient, engine: UpperEngine) -> None:
    assert (await call(client, "é" * 1_000))["output"] == "É" * 1_000
    body = await call(client, "x" * 1_001)
    assert body["output"] is None
    assert body["error"]["code"] == "input_too_long"
    assert "1,001 characters; at most 1,000" in body["error"]["message"]
    assert len(engine.batches) == 1


async def test_a_failure_the_engine_raises_answers_every_call(client: httpx.AsyncClient) -> None:
    response = await client.post("/calls", json={"calls": [{"input": "a"}, {"input": "raise failure"}]})
    assert [answer["error"]["code"] for answer in response.json()["calls"]] == ["no_luck", "no_luck"]


@pytest.mark.parametrize("text", ["broken", "too few", "wrong type", "half a character"])
async def test_a_fault_of_the_engine_is_an_answer_and_a_log_line(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    body = await call(client, text)
    assert body["output"] is None
    assert body["error"]["code"] == "internal"
    assert "secret" not in str(body)
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert record.exc_info
    assert (await call(client, "abc"))["output"] == "ABC"


async def test_an_engine_that_hangs_meets_the_deadline(engine: UpperEngine, caplog: pytest.LogCaptureFixture) -> None:
    async with running(create_app(replace(INFO, answer_seconds=0.01), engine)) as client:
        await until_ready(client)
        body = await call(client, "hold")
    assert body["error"] == {"code": "timeout", "message": "the tool did not answer within 0.01 seconds"}
    assert "no answer within 0.01 s" in caplog.text


async def test_an_engine_not_ready_for_the_moment_is_503(client: httpx.AsyncClient) -> None:
    response = await client.post("/call", json={"input": "not ready"})
    assert response.status_code == 503
    assert response.headers["retry-after"] == "2"
    assert error_of(response)["code"] == "not_ready"
    assert error_of(response)["message"] == "the index is being rebuilt"


async def test_metrics_count_calls_by_outcome(client: httpx.AsyncClient) -> None:
    for text in ("a", "b", "fail", "broken", "x" * 2_000):
        await call(client, text)
    await client.post("/calls", json={"calls": [{"input": "c"}, {"input": "d"}, {"input": "fail"}]})
    families = {family.name: family for family in text_string_to_metric_families((await client.get("/metrics")).text)}
    outcomes = {
        sample.labels["outcome"]: sample.value
        for sample in families["tool_calls"].samples
        if sample.name == "tool_calls_total"
    }
    assert outcomes == {"ok": 4, "no_answer": 2, "internal": 1, "input_too_long": 1}
    totals = {
        sample.name: sample.value
        for name in ("tool_batch_size", "tool_call_duration_seconds", "tool_calls_in_flight")
        for sample in families[name].samples
    }
    assert totals["tool_batch_size_count"] == 5
    assert totals["tool_batch_size_sum"] == 7
    assert totals["tool_call_duration_seconds_count"] == 7
    assert totals["tool_calls_in_flight"] == 0


async def test_a_services_own_routes_share_its_gates_and_its_error_shape(engine: UpperEngine) -> None:
    router = APIRouter()

    @router.get("/plain")
    async def plain(text: str) -> str:
        [answer] = await engine.answer([Call(text)])
        if isinstance(answer, ToolFailure):
            raise answer
        return answer

    @router.get("/absent")
    async def absent() -> None:
        raise NotReady("away")

    engine.may_start.clear()
    async with running(create_app(INFO, engine, router)) as client:
        early = await client.get("/plain", params={"text": "a"})
        assert early.status_code == 503
        engine.may_start.set()
        await until_ready(client)

        assert (await client.get("/plain", params={"text": "a"})).json() == "A"
        failed = await client.get("/plain", params={"text": "fail"})
        assert failed.status_code == 422
        assert error_of(failed)["code"] == "no_answer"
        assert (await client.get("/absent")).status_code == 503

        holding = [asyncio.create_task(client.get("/plain", params={"text": "hold"})) for _ in range(6)]

        async def all_hold() -> bool:
            return engine.batches[-6:] == [[Call("hold")]] * 6

        await until(all_hold)
        busy = await client.get("/plain", params={"text": "a"})
        assert error_of(busy)["code"] == "busy"
        engine.released.set()
        assert [response.status_code for response in await asyncio.gather(*holding)] == [200] * 6


async def test_a_request_keeps_the_id_that_its_caller_gave_it(client: httpx.AsyncClient) -> None:
    response = await client.post("/call", json={"input": "abc"}, headers={"X-Request-Id": "r-1"})
    assert response.headers["x-request-id"] == "r-1"
    assert len((await client.get("/health")).headers["x-request-id"]) == 32


async def test_the_openapi_document_has_examples_and_errors(client: httpx.AsyncClient) -> None:
    document = (await client.get("/openapi.json")).json()
    operation = document["paths"]["/call"]["post"]
    content = operation["requestBody"]["content"]["application/json"]
    assert content["examples"]["example"]["value"] == {"input": "abc", "context": {"date": "2026-11-20"}}
    assert operation["responses"]["200"]["content"]["application/json"]["example"]["output"] == "ABC"
    assert set(operation["responses"]) == {"200", "400", "413", "422", "503"}
    assert document["info"]["version"] == "1.2.3"
    assert (await client.get("/docs")).status_code == 200


@pytest.mark.parametrize("path", ["/call", "/calls", "/mcp"])
async def test_get_on_a_post_route_is_405(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"
    assert error_of(response)["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"max_in_flight": 3}, "must admit a whole max_batch"),
        ({"max_input_chars": 0}, "max_input_chars must be positive"),
        ({"answer_seconds": -1.0}, "answer_seconds must be positive"),
    ],
)
def test_limits_that_cannot_hold_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(INFO, **limits)


class UpperEngineWithData(UpperEngine):
    """Its answers come from data of a version."""

    data_version = "7f3a"


@pytest.mark.parametrize(("engine", "version"), [(UpperEngine(), "1.2.3"), (UpperEngineWithData(), "1.2.3+7f3a")])
async def test_answers_name_the_version_they_hold_for(engine: UpperEngine, version: str) -> None:
    async with running(create_app(INFO, engine)) as client:
        await until_ready(client)
        for answer in (
            await client.get("/ready"),
            await client.post("/call", json={"input": "a"}),
            await client.post("/calls", json={"calls": [{"input": "a"}]}),
        ):
            assert answer.headers["tool-version"] == version


async def test_what_is_no_answer_names_no_version() -> None:
    async with running(create_app(INFO, UpperEngine())) as client:
        await until_ready(client)
        assert "tool-version" not in (await client.post("/call", json={})).headers
