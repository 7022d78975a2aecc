"""Models, tools, health, readiness, metrics, the page, and a request's id."""

import logging
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from inference_gateway.http import operations
from inference_gateway.serving.metrics import GatewayMetrics
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import Gateway, gateway, serving
from tests.support.waiting import until
from tests.toolformer import tool_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_model_is_listed(plain: Gateway) -> None:
    listed = (await plain.http.get("/v1/models")).json()
    [model] = listed["data"]
    assert listed["object"] == "list"
    assert (model["id"], model["object"], model["max_model_len"]) == ("scripted", "model", 256)
    assert model["created"] > 1_700_000_000
    assert (await plain.http.get("/v1/models/scripted")).json() == model


async def test_tools_are_listed_with_what_they_may_take_and_whether_they_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("TOOL_CHECK_SECONDS", "PROBE_CHECK_SECONDS"):
        monkeypatch.setattr(operations, name, 30.0)  # a busy machine must not make a tool look down
    async with serving(calculator()) as url, gateway({"Calculator": url}) as running:
        listed = (await running.http.get("/v1/tools")).json()
        ready = await running.http.get("/ready")
    tools = {tool["name"]: tool for tool in listed["data"]}
    assert list(tools)[:2] == ["Calculator", "Calendar"]
    assert (tools["Calculator"]["ready"], tools["Calculator"]["reason"]) == (True, None)
    assert tools["Calculator"]["limits"] == {"max_input_tokens": 64, "max_result_tokens": 24, "timeout_s": 2.0}
    assert (tools["Calendar"]["ready"], tools["Calendar"]["takes_date"]) == (False, True)
    assert "cannot be reached" in tools["Calendar"]["reason"]
    assert (tools["WikiSearch"]["ready"], tools["WikiSearch"]["quoted"]) == (False, True)
    assert ready.status_code == 200
    assert ready.json()["model"] == "scripted"
    assert {name: tool["ready"] for name, tool in ready.json()["tools"].items()} == {
        name: tool["ready"] for name, tool in tools.items()
    }


async def test_nobody_outside_learns_where_tools_live(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with gateway() as running:
        listed = await running.http.get("/v1/tools")
        ready = await running.http.get("/ready")
        answer = await running.complete("Sum:")
    assert [call["error"].partition(":")[0] for call in answer["choices"][0]["tool_calls"]] == ["unreachable"]
    for shown in (listed.text, ready.text, str(answer)):
        assert "cannot be reached" in shown
        assert "127.0.0.1" not in shown
        assert "http://" not in shown
    assert "Calculator cannot be reached at http://127.0.0.1:9" in caplog.text


async def test_codes_that_a_service_makes_up_are_not_series_without_end() -> None:
    metrics = GatewayMetrics(CollectorRegistry(), lambda: None)
    codes = [metrics.code("Calculator", f"code_{n}") for n in range(300)]
    assert codes[:32] == [f"code_{n}" for n in range(32)]
    assert set(codes[32:]) == {"other"}
    assert metrics.code("Calculator", "code_7") == "code_7"
    assert metrics.code("QA", "code_299") == "code_299"


async def test_a_tool_that_hangs_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOOL_CHECK_SECONDS", "PROBE_CHECK_SECONDS"):
        monkeypatch.setattr(operations, name, 0.05)
    async with tool_service.serve(tool_service.silent) as hanging, gateway({"Calendar": hanging.url}) as running:
        listed = (await running.http.get("/v1/tools")).json()["data"]
        ready = await running.http.get("/ready")
    [calendar] = [tool for tool in listed if tool["name"] == "Calendar"]
    assert (calendar["ready"], "within 0.05 s" in calendar["reason"]) == (False, True)
    assert ready.status_code == 200
    assert ready.json()["tools"]["Calendar"]["ready"] is False


async def test_waiting_and_calling_sequences_are_gauged() -> None:
    async with (
        tool_service.serve(tool_service.silent) as tool,
        gateway({"Calculator": tool.url}, {"max_sequences": 2}) as running,
    ):
        prompts = ["Sum:", "Sum:", "Slow:", "Slow:", "Plain:", "Plain:", "Plain:"]
        body = {"prompt": prompts, "max_tokens": 200, "tool_timeout": 60, "stream": True, "stream_tool_events": True}
        async with running.http.stream("POST", "/v1/completions", json=body) as response:
            received = ""
            async for piece in response.aiter_text():
                received += piece
                if received.count("call_started") == 2:
                    break
            await until(lambda: running.backend.stats().running == 2)
            metrics = (await running.http.get("/metrics")).text
    gauges = dict(re.findall(r"^toolformer_num_requests_(\w+) (\S+)$", metrics, re.MULTILINE))
    assert gauges == {"running": "2.0", "waiting": "3.0", "in_call": "2.0"}


@pytest.mark.parametrize("given", ["abc-123", None, "x" * 129, "with space", "ö"])
async def test_a_request_has_an_id_that_reaches_the_tools(given: str | None) -> None:
    async with (
        tool_service.serve(tool_service.capitals("Calculator")) as tool,
        gateway({"Calculator": tool.url}) as running,
    ):
        headers = {b"X-Request-Id": given.encode()} if given else {}
        body = {"prompt": "Sum:", "max_tokens": 40}
        response = await running.http.post("/v1/completions", json=body, headers=headers)
    returned = response.headers["x-request-id"]
    assert returned == given if given == "abc-123" else re.fullmatch("[0-9a-f]{32}", returned)
    assert [seen.headers["x-request-id"] for seen in tool.seen] == [returned]


async def test_the_page_and_its_parts_come_from_here_and_are_checked_for_changes(plain: Gateway) -> None:
    response = await plain.http.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "connect-src 'self'" in response.headers["content-security-policy"]
    assert "unsafe" not in response.headers["content-security-policy"]
    parts = re.findall(r"""(?:src|href)=["'](?!docs|data:)([^"']+)""", response.text)
    assert parts == ["playground/style.css", "playground/main.js"]
    for part in parts:
        loaded = await plain.http.get(f"/{part}")
        assert loaded.headers["content-type"].partition(";")[0] in ("text/css", "text/javascript")
        again = await plain.http.get(f"/{part}", headers={"If-None-Match": loaded.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


async def test_head_is_wherever_get_is(plain: Gateway) -> None:
    paths = (await plain.http.get("/openapi.json")).json()["paths"]
    described = [path.format(id="scripted") for path, operations in paths.items() if "get" in operations]
    assert {"/health", "/ready", "/metrics", "/v1/models"} <= set(described)
    for path in [*described, "/", "/docs", "/openapi.json", "/playground/main.js"]:
        head, full = await plain.http.head(path), await plain.http.get(path)
        assert (head.status_code, head.content) == (full.status_code, b"") == (200, b""), path
        assert head.headers["content-type"] == full.headers["content-type"]
        if path not in ("/metrics", "/ready"):  # which differ from time to time
            assert head.headers["content-length"] == str(len(full.content))
    assert await plain.metric('http_requests_total{method="HEAD",route="/health",status="200"}') == 1
    assert (await plain.http.head("/v1/completions")).status_code == 405


async def test_the_api_describes_itself(plain: Gateway) -> None:
    document = (await plain.http.get("/openapi.json")).json()
    assert {"/v1/completions", "/v1/models", "/v1/models/{id}", "/v1/tools", "/health", "/ready", "/metrics"} <= set(
        document["paths"]
    )
    readme = (Path(__file__).parents[2] / "inference_gateway" / "README.md").read_text()
    for field in document["components"]["schemas"]["CompletionBody"]["properties"]:
        assert f"`{field}`" in readme, f"the README does not describe {field}"
