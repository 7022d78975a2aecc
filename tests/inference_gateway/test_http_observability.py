"""What operators see of a request: its spans, its log lines; and what nobody sees unless asked: its prompt."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from fastapi import FastAPI, Request, Response
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inference_gateway.app import create_app
from inference_gateway.settings import GatewaySettings
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import Gateway, gateway, scripted_backend, serving, tools_at
from tests.toolformer import tool_service
from toolformer.http_api import Tracing
from toolformer.http_api.logs import JsonFormatter, configure_logging

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = f"00-{TRACE}-b7ad6b7169203331-01"
SECRET = "the word that nobody may read"


def in_memory() -> tuple[Tracing, InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return Tracing(provider), exporter


def named(spans: tuple[ReadableSpan, ...]) -> dict[str, ReadableSpan]:
    assert len({span.name for span in spans}) == len(spans)
    return {span.name: span for span in spans}


def parent(span: ReadableSpan) -> int:
    assert span.parent is not None
    return int(span.parent.span_id)


def own(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


@pytest.mark.parametrize("early", [False, True])
async def test_a_request_has_spans_down_to_the_tool(early: bool) -> None:
    tracing, exporter = in_memory()
    async with (
        tool_service.serve(tool_service.capitals("Calculator")) as tool,
        gateway({"Calculator": tool.url}, tracing=tracing, early_dispatch=early) as running,
    ):
        headers = {"traceparent": CALLER, "tracestate": "a=b", "X-Request-Id": "r-1"}
        body = {"prompt": "Sum:", "max_tokens": 40, "stream": True}
        response = await running.http.post("/v1/completions", json=body, headers=headers)
        assert response.status_code == 200
    spans = named(tuple(span for span in exporter.get_finished_spans() if "models" not in span.name))
    assert set(spans) == {"POST /v1/completions", "completion", "prefill", "call Calculator"}
    request, completion, call = spans["POST /v1/completions"], spans["completion"], spans["call Calculator"]
    assert {trace.format_trace_id(span.context.trace_id) for span in spans.values() if span.context} == {TRACE}
    assert parent(request) == int(CALLER.split("-")[2], 16)
    assert parent(completion) == own(request)
    assert parent(call) == parent(spans["prefill"]) == own(completion)
    assert (request.kind, call.kind) == (trace.SpanKind.SERVER, trace.SpanKind.CLIENT)
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["toolformer.request_id"] == "r-1"
    assert completion.attributes is not None
    assert completion.attributes["toolformer.finish_reason"] == "stop"
    assert call.attributes == {
        "toolformer.tool": "Calculator",
        "toolformer.early": early,
        "toolformer.kept": False,
        "toolformer.outcome": "ok",
    }
    [seen] = tool.seen
    assert seen.headers["traceparent"] == f"00-{TRACE}-{own(call):016x}-01"
    assert seen.headers["tracestate"] == "a=b"


async def test_a_call_that_fails_and_a_client_that_leaves_are_seen() -> None:
    tracing, exporter = in_memory()
    async with (
        tool_service.serve(tool_service.silent) as tool,
        gateway({"Calculator": tool.url}, tracing=tracing) as running,
    ):
        body = {"prompt": "Sum:", "max_tokens": 40, "stream": True, "stream_tool_events": True}
        async with running.http.stream("POST", "/v1/completions", json=body) as response:
            async for piece in response.aiter_text():
                if "call_started" in piece:
                    break
        await running.idle()
        await running.complete("Day:")
    calls = [span for span in exporter.get_finished_spans() if span.name.startswith("call ")]
    assert [span.name for span in calls] == ["call Calculator", "call Calendar"]
    assert calls[1].attributes is not None
    assert (calls[1].attributes["toolformer.tool"], calls[1].attributes["toolformer.outcome"]) == (
        "Calendar",
        "unreachable",
    )
    assert calls[1].status.status_code is trace.StatusCode.ERROR
    assert [span.name for span in exporter.get_finished_spans()].count("completion") == 2


async def test_without_spans_of_its_own_a_trace_still_reaches_the_tool() -> None:
    async with (
        tool_service.serve(tool_service.capitals("Calculator")) as tool,
        gateway({"Calculator": tool.url}) as running,
    ):
        for headers in ({"traceparent": CALLER}, {}):
            body = {"prompt": "Sum:", "max_tokens": 40}
            await running.http.post("/v1/completions", json=body, headers=headers)
    assert [seen.headers.get("traceparent") for seen in tool.seen] == [CALLER, None]


@asynccontextmanager
async def collector() -> AsyncIterator[tuple[str, list[ExportTraceServiceRequest]]]:
    """An OTLP collector that keeps what it is sent."""
    app, received = FastAPI(), list[ExportTraceServiceRequest]()

    @app.post("/v1/traces")
    async def traces(request: Request) -> Response:
        assert request.headers["content-type"] == "application/x-protobuf"
        received.append(ExportTraceServiceRequest.FromString(await request.body()))
        return Response(media_type="application/x-protobuf")

    async with serving(app) as url:
        yield url, received


async def test_the_standard_variables_send_spans_of_gateway_and_services(monkeypatch: pytest.MonkeyPatch) -> None:
    async with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        async with serving(calculator()) as tool_url, gateway({"Calculator": tool_url}) as running:
            await running.http.post("/v1/completions", json={"prompt": "Sum:", "max_tokens": 40})
    names: dict[str, set[str]] = {}
    traces = set()
    for request in received:
        for of_resource in request.resource_spans:
            [service] = [a.value.string_value for a in of_resource.resource.attributes if a.key == "service.name"]
            spans = [span for of_scope in of_resource.scope_spans for span in of_scope.spans]
            names.setdefault(service, set()).update(span.name for span in spans)
            traces |= {span.trace_id for span in spans if span.name in ("POST /call", "POST /v1/completions")}
    assert names["toolformer-gateway"] >= {"POST /v1/completions", "completion", "prefill", "call Calculator"}
    assert "POST /call" in names["toolformer-calculator"]
    assert len(traces) == 1, "the tool's span belongs to the gateway's trace"


@pytest.mark.parametrize(
    ("variables", "sends"),
    [
        ({}, False),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:9/v1/traces"}, True),
    ],
)
async def test_spans_are_off_unless_asked_for(
    variables: dict[str, str], sends: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tracing = Tracing.from_environment("toolformer-test", variables)
    assert isinstance(tracing.tracer, trace.NoOpTracer) is not sends
    unsupported = "zipkin" in variables.values() or "grpc" in variables.values()
    assert ("is not supported" in caplog.text) is unsupported
    await tracing.close()


@contextmanager
def logged() -> Iterator[list[dict[str, object]]]:
    """All that is logged meanwhile, at any level, as JSON would have it."""
    lines: list[dict[str, object]] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(JsonFormatter().format(record)))

    root, handler = logging.getLogger(), Keep(logging.DEBUG)
    level, handlers = root.level, list(root.handlers)
    configure_logging("DEBUG", "json")
    root.addHandler(handler)
    try:
        yield lines
    finally:
        root.handlers = handlers
        root.setLevel(level)
        logging.captureWarnings(False)


async def speak(running: Gateway) -> None:
    """Requests of many kinds, each with the secret in it."""
    for body in (
        {"prompt": f"{SECRET} Sum:", "max_tokens": 40},
        {"prompt": f"{SECRET} Sum:", "max_tokens": 40, "stream": True, "echo": True},
        {"prompt": SECRET, "stop": SECRET, "max_tokens": -1},
        {"prompt": SECRET * 100},
        {"prompt": [SECRET, 3]},
        {"prompt": "Plain:", "model": SECRET},
    ):
        await running.http.post("/v1/completions", json=body)
    await running.http.post("/v1/completions", content=f'{{"prompt": "{SECRET}')
    await running.http.get("/v1/models", params={"q": SECRET})


async def test_a_prompt_is_in_no_log_unless_a_setting_says_so() -> None:
    with logged() as lines:
        async with serving(calculator()) as tool, gateway({"Calculator": tool}) as running:
            await speak(running)
    log = "\n".join(json.dumps(line) for line in lines)
    assert "completion cmpl-" in log
    for secret in (SECRET, SECRET.replace(" ", "+"), SECRET.replace(" ", "%20"), "24 * 17", "books"):
        assert secret not in log
    with logged() as lines:
        async with serving(calculator()) as tool, gateway({"Calculator": tool}, log_prompts=True) as running:
            await speak(running)
    texts = [line for line in lines if "prompts" in line]
    assert [line["prompts"] for line in texts] == [[f"{SECRET} Sum:"]] * 2
    assert texts[0]["texts"] == [" It is [Calculator(24 * 17) -> 408] 408 books."]


async def test_log_lines_are_json_with_the_request_s_id_and_trace() -> None:
    with logged() as lines:
        async with gateway(api_keys="alice:k-1", key="k-1") as running:
            headers = {"X-Request-Id": "r-7", "traceparent": CALLER}
            answer = await running.http.post("/v1/completions", json={"prompt": "Plain:"}, headers=headers)
            await running.http.get("/health")
    [completion] = [line for line in lines if line["logger"] == "inference_gateway.serving.completion_log"]
    [access] = [line for line in lines if line["logger"] == "uvicorn.access" and line["path"] == "/v1/completions"]
    for line in (completion, access):
        assert (line["request_id"], line["trace_id"], line["level"]) == ("r-7", TRACE, "INFO")
        assert str(line["time"]).endswith("Z")
    assert (access["method"], access["status"]) == ("POST", 200)
    assert (completion["api_key"], completion["finish_reasons"]) == ("alice", ["stop"])
    assert completion["completion_tokens"] == answer.json()["usage"]["completion_tokens"]
    assert completion["completion_id"] == answer.json()["id"]
    assert not [line for line in lines if line.get("path") == "/health"]
    assert not [line for line in lines if "k-1" in json.dumps(line)]


async def test_a_request_that_its_client_left_has_a_line() -> None:
    with logged() as lines:
        async with tool_service.serve(tool_service.silent) as tool, gateway({"Calculator": tool.url}) as running:
            sent = asyncio.create_task(running.http.post("/v1/completions", json={"prompt": "Sum:", "max_tokens": 40}))
            async with asyncio.timeout(60):
                await tool.arrived.wait()
            sent.cancel()
            await running.idle()
    [line] = [line for line in lines if "finish_reasons" in line]
    assert line["finish_reasons"] == ["cancelled"]


async def test_a_collector_that_is_gone_holds_nothing_up() -> None:
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    tracing = Tracing.from_environment("toolformer-test", variables)
    app = create_app(scripted_backend, tools_at({}), GatewaySettings(), tracing=tracing)
    async with serving(app):
        pass
