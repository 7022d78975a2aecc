"""``CompletionService`` over real sockets, with grpc's own client."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inference_gateway.app import create_app
from inference_gateway.grpc_api import service
from inference_gateway.grpc_api.calls import COMPLETE, ServicerContext
from inference_gateway.grpc_api.server import SERVICE
from inference_gateway.grpc_api.status import GrpcStatus
from inference_gateway.settings import GatewaySettings, SettingsError
from services.calculator.app import build_app as calculator
from tests.inference_gateway.grpc_harness import Client, Refusal, client, kinds, text
from tests.inference_gateway.http_harness import gateway, scripted_backend, serving, tools_at
from tests.support.processes import started
from tests.toolformer import tool_service
from toolformer.http_api import ApiError, Tracing
from toolformer.v1.completion_pb2 import CompletionEvent, CompletionRequest
from toolformer.v1.completion_pb2_grpc import CompletionServiceStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

HEALTH = health_pb2.HealthCheckResponse


@contextlib.asynccontextmanager
async def served(urls: dict[str, str] | None = None, **settings: Any) -> AsyncIterator[Client]:
    """A gateway with a gRPC port, and a client of it."""
    async with gateway(urls, grpc_port=0, **settings) as running, client(running) as connected:
        yield connected


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain() -> AsyncIterator[Client]:
    """A client of a gateway whose tools are all down, for all tests of this file."""
    async with served() as connected:
        yield connected


async def test_a_stream_sends_text_the_call_and_the_end() -> None:
    async with serving(calculator()) as url, served({"Calculator": url}) as grpc_client:
        events = await grpc_client.complete("Sum:")
        rest = await grpc_client.gateway.complete("Sum:")
    assert kinds(events) == ["text_delta", "call_started", "call_finished", "text_delta", "finished"]
    assert text(events) == rest["choices"][0]["text"] == " It is [Calculator(24 * 17) -> 408] 408 books."
    [started] = [event.call_started for event in events if event.HasField("call_started")]
    assert (started.tool, started.input, started.offset) == ("Calculator", "24 * 17", len(" It is"))
    end = events[-1].finished
    [called] = [event.call_finished for event in events if event.HasField("call_finished")]
    assert list(end.tool_calls) == [called]
    assert (called.output, called.HasField("error"), called.offset) == ("408", False, len(" It is"))
    assert called.duration_ms > 0
    assert (end.finish_reason, end.timed_out) == ("stop", False)
    counts = rest["usage"]
    assert end.usage.total_tokens == counts["total_tokens"]
    assert end.usage.tool_tokens == counts["tool_tokens"] > 0


async def test_a_tool_that_fails_is_reported_and_leaves_nothing_in_the_text(plain: Client) -> None:
    events = await plain.complete("Sum:")
    assert kinds(events) == ["text_delta", "call_started", "call_finished", "text_delta", "finished"]
    [called] = events[-1].finished.tool_calls
    assert called.error.startswith("unreachable: ")
    assert not called.HasField("output")
    assert text(events) == " It is unknown."


async def test_token_ids_and_their_log_probabilities(plain: Client) -> None:
    ids = plain.gateway.backend.tokenizer.encode("Plain:")
    events = await plain.complete(prompt_token_ids=ids, logprobs=2)
    assert text(events) == " a plain text."
    tokens = [token for event in events for token in event.text_delta.tokens]
    assert tokens.pop().id in plain.gateway.backend.vocabulary.end_ids  # it ended the text, and is none of it
    spelt = b"".join(plain.gateway.backend.tokenizer.token_bytes(token.id) for token in tokens)
    assert spelt.decode() == " a plain text."
    assert all(token.HasField("logprob") and token.logprob < 0 and len(token.top) == 2 for token in tokens)
    assert not any(event.text_delta.tokens for event in await plain.complete("Plain:"))
    bare = await plain.complete("Plain:", return_token_ids=True)
    assert [token.id for event in bare for token in event.text_delta.tokens] == [token.id for token in tokens]


@pytest.mark.parametrize(
    ("fields", "code", "field", "reason"),
    [
        ({}, "INVALID_ARGUMENT", "prompt", "invalid_value"),
        ({"prompt": "Sum:", "prompt_token_ids": [1]}, "INVALID_ARGUMENT", "prompt", "invalid_value"),
        ({"prompt_token_ids": [1] * 256}, "INVALID_ARGUMENT", "prompt_token_ids", "context_length_exceeded"),
        ({"prompt_token_ids": [1, 10**9]}, "INVALID_ARGUMENT", "prompt_token_ids.1", "unknown_token"),
        ({"prompt": "Sum:", "temperature": 3.0}, "INVALID_ARGUMENT", "temperature", "invalid_value"),
        ({"prompt": "Sum:", "temperature": float("nan")}, "INVALID_ARGUMENT", "temperature", "invalid_value"),
        ({"prompt": "Sum:", "max_tokens": 100_000}, "INVALID_ARGUMENT", "max_tokens", "context_length_exceeded"),
        ({"prompt": "Sum:", "tools": ["Oracle"]}, "INVALID_ARGUMENT", "tools", "unknown_tool"),
        ({"prompt": "Sum:", "tools": [7]}, "INVALID_ARGUMENT", "tools.0", "invalid_value"),
        (
            {"prompt": "Sum:", "tool_context": {"date": "today"}},
            "INVALID_ARGUMENT",
            "tool_context.date",
            "invalid_value",
        ),
        ({"prompt": "Sum:", "tools": [7] * 85_000}, "INVALID_ARGUMENT", "tools.0", "invalid_value"),
        ({"prompt": "Sum:", "tools": ["QA"] * 85_000}, "INVALID_ARGUMENT", "tools", "invalid_value"),
        ({"prompt": "Sum:", "tools": [float("nan")]}, "INVALID_ARGUMENT", "tools.0", "invalid_value"),
        ({"prompt": "Sum:", "stop": ["x"] * 85_000}, "INVALID_ARGUMENT", "stop", "invalid_value"),
        (
            {"prompt": "Sum:", "logit_bias": dict.fromkeys(range(50_000), 1.0)},
            "INVALID_ARGUMENT",
            "logit_bias",
            "invalid_value",
        ),
        ({"prompt": "Sum:", "stop": ["x"] * 5}, "INVALID_ARGUMENT", "stop", "invalid_value"),
        ({"prompt": "Sum:", "model": "other"}, "NOT_FOUND", "model", "model_not_found"),
    ],
)
async def test_a_field_at_fault_is_named(
    plain: Client, fields: dict[str, Any], code: str, field: str, reason: str
) -> None:
    refused = await plain.refused(**fields)
    assert (refused.code.name, refused.fields, refused.reason) == (code, [field], reason)
    assert field.partition("_")[0].partition(".")[0] in refused.message
    assert "more)" not in refused.message


async def test_without_tools_nothing_is_called(plain: Client) -> None:
    events = await plain.complete("Sum:", tools=[])
    assert kinds(events) == ["text_delta", "finished"]
    assert "[Calculator" not in text(events)


@pytest.mark.parametrize("how", ["cancelled", "deadline", "channel closed"])
async def test_a_client_that_leaves_during_a_call_frees_the_row(how: str) -> None:
    async with tool_service.serve(tool_service.silent) as tool, served({"Calculator": tool.url}) as leaving:
        call = leaving.begin("Sum:", seconds=3.0 if how == "deadline" else 60)
        reading = asyncio.create_task(_read(call))
        async with asyncio.timeout(60):
            await tool.arrived.wait()
            if how == "cancelled":
                call.cancel()
            elif how == "channel closed":
                await leaving.channel.close()
            await tool.client_left.wait()
            await reading
        await leaving.gateway.idle()
        # The client resets the stream when the deadline passes; either that or the server's own clock comes first.
        codes = ["CANCELLED", "DEADLINE_EXCEEDED"] if how == "deadline" else ["CANCELLED"]
        samples = [f'grpc_requests_total{{code="{code}",method="Complete"}}' for code in codes]
        async with asyncio.timeout(60):
            while sum([await leaving.gateway.metric(sample) for sample in samples]) != 1:  # noqa: ASYNC110 - no event comes
                await asyncio.sleep(0.01)
        assert await leaving.gateway.metric('toolformer_completions_total{finish_reason="cancelled"}') == 1


async def test_cancelling_in_the_middle_of_the_text_frees_the_row(plain: Client) -> None:
    for _ in range(5):
        call = plain.begin("Long:", max_tokens=200)
        assert (await anext(aiter(call))).text_delta.text
        call.cancel()
        await plain.gateway.idle()
    assert text(await plain.complete("Plain:")) == " a plain text."


async def test_no_room_says_when_to_try_again() -> None:
    async with (
        tool_service.serve(tool_service.silent) as tool,
        served({"Calculator": tool.url}, max_requests=1) as crowd,
    ):
        holding = crowd.begin("Sum:")
        async with asyncio.timeout(60):
            await tool.arrived.wait()
        refused = await crowd.refused("Plain:")
        assert (refused.code.name, refused.reason) == ("RESOURCE_EXHAUSTED", "busy")
        assert refused.retry_seconds == 1
        over_http = await crowd.gateway.http.post("/v1/completions", json={"prompt": "Plain:"})
        assert over_http.status_code == 503  # the room is one for both
        holding.cancel()


async def test_a_full_engine_says_when_to_try_again() -> None:
    async with served(limits={"max_sequences": 1, "max_waiting": 1}) as crowd:
        holding = crowd.begin("Slow:", max_tokens=200)
        async with asyncio.timeout(60):
            assert (await anext(aiter(holding))).text_delta.text
            waiting = crowd.begin("Plain:")
            while crowd.gateway.backend.stats().waiting == 0:  # noqa: ASYNC110 - the engine sends no event
                await asyncio.sleep(0.01)
        refused = await crowd.refused("Plain:")
        assert (refused.code.name, refused.reason) == ("RESOURCE_EXHAUSTED", "busy")
        assert refused.retry_seconds is not None
        holding.cancel()
        assert text([event async for event in waiting]) == " a plain text."


async def test_a_request_that_is_too_long_is_refused() -> None:
    async with served(max_body_bytes=1024) as limited:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await limited.complete("word " * 1000)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_every_method_but_the_open_ones_needs_a_key() -> None:
    right = [("authorization", "Bearer right-key")]
    async with served(api_keys="alice:right-key", key="right-key") as guarded:
        for metadata in ([], [("authorization", "Bearer wrong")], [("authorization", "Basic right-key")]):
            refused = await guarded.refused("Plain:", metadata=metadata)
            assert refused.code is grpc.StatusCode.UNAUTHENTICATED
            assert refused.reason in ("missing_api_key", "invalid_api_key")
        assert text(await guarded.complete("Plain:", metadata=right)) == " a plain text."
        unknown: Any = guarded.channel.unary_unary("/toolformer.v1.CompletionService/Other")
        for given, code in (((), grpc.StatusCode.UNAUTHENTICATED), (tuple(right), grpc.StatusCode.UNIMPLEMENTED)):
            with pytest.raises(grpc.aio.AioRpcError) as failure:
                await unknown(b"", metadata=given)
            assert failure.value.code() is code
        assert await status_of(guarded, SERVICE) == HEALTH.SERVING


async def test_a_key_has_its_share_over_http_and_grpc_together() -> None:
    metadata = [("authorization", "Bearer k-1")]
    async with served(api_keys="k-1", key="k-1", key_requests_per_minute=2) as guarded:
        await guarded.complete("Plain:", metadata=metadata)
        await guarded.gateway.complete("Plain:")
        refused = await guarded.refused("Plain:", metadata=metadata)
    assert (refused.code.name, refused.reason) == ("RESOURCE_EXHAUSTED", "rate_limit_exceeded")
    assert refused.retry_seconds == 30


async def test_the_request_id_goes_to_the_tool_and_back() -> None:
    async with tool_service.serve(tool_service.capitals("Calculator")) as tool, served({"Calculator": tool.url}) as one:
        call = one.begin("Sum:", metadata=[("x-request-id", "from-a-client")])
        _ = [event async for event in call]
        assert dict(await call.initial_metadata())["x-request-id"] == "from-a-client"
        assert [seen.headers["x-request-id"] for seen in tool.seen if seen.method == "POST"] == ["from-a-client"]
        other = one.begin("Plain:", metadata=[("x-request-id", "not a sensible one")])
        _ = [event async for event in other]
        made = dict(await other.initial_metadata())["x-request-id"]
        assert len(made) == 32


async def test_an_rpc_is_a_span_of_the_callers_trace() -> None:
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    async with served(tracing=Tracing(provider)) as traced:
        await traced.complete("Plain:", metadata=[("traceparent", f"00-{trace_id}-b7ad6b7169203331-01")])
        await traced.refused("Plain:", max_calls=-1)
    whole, refused = [
        span for span in spans.get_finished_spans() if span.name == "toolformer.v1.CompletionService/Complete"
    ]
    assert whole.context is not None
    assert f"{whole.context.trace_id:032x}" == trace_id
    assert whole.attributes is not None
    assert whole.attributes["rpc.grpc.status_code"] == 0
    [completion] = [span for span in spans.get_finished_spans() if span.name == "completion"]
    assert completion.parent is not None
    assert completion.parent.span_id == whole.context.span_id
    assert refused.attributes is not None
    assert refused.attributes["rpc.grpc.status_code"] == grpc.StatusCode.INVALID_ARGUMENT.value[0]


async def test_a_model_that_fails_is_an_internal_error(plain: Client, caplog: pytest.LogCaptureFixture) -> None:
    backend = plain.gateway.backend
    broken = RuntimeError("no such prompt text in an answer")

    def fail(*_: object) -> Any:
        raise broken

    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.ERROR):
        patch.setattr(backend, "open", fail)
        refused = await plain.refused("Plain:")
    assert (refused.code.name, refused.reason) == ("INTERNAL", "internal_error")
    assert "no such prompt" not in refused.message
    assert any(record.exc_info and record.exc_info[1] is broken for record in caplog.records)


async def test_a_client_that_never_reads_counts_as_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "SEND_SECONDS", 0.05)

    class Full:
        async def write(self, _: CompletionEvent) -> None:
            await asyncio.Event().wait()  # the buffers are full

    with pytest.raises(ApiError) as gone:
        await service._write(cast(ServicerContext, Full()), CompletionEvent())
    assert GrpcStatus.of(gone.value).code is grpc.StatusCode.DEADLINE_EXCEEDED


async def status_of(one: Client, name: str) -> int:
    """What the health service says of the service ``name``, once it knows it."""
    check: Any = one.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
        response_deserializer=HEALTH.FromString,
    )
    async with asyncio.timeout(60):
        while True:
            status = int((await check(health_pb2.HealthCheckRequest(service=name))).status)
            if status != HEALTH.NOT_SERVING:
                return status
            await asyncio.sleep(0.05)


async def test_bytes_that_are_no_message_have_a_status_an_id_and_a_count(
    plain: Client, caplog: pytest.LogCaptureFixture
) -> None:
    method: Any = plain.channel.unary_stream(COMPLETE)
    counted = 'grpc_requests_total{code="INVALID_ARGUMENT",method="Complete"}'
    before = await plain.gateway.metric(counted)
    for number, junk in enumerate([b"\xff", b"\x0a\x05ab", b"\x0a\x01\xff"]):
        call = method(junk, timeout=60, metadata=(("x-request-id", f"junk-{number}"),))
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            _ = [event async for event in call]
        refusal = Refusal.read(failure.value)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "malformed_message")
        assert "no toolformer.v1.CompletionRequest" in refusal.message
        assert dict(await call.initial_metadata())["x-request-id"] == f"junk-{number}"
    assert await plain.gateway.metric(counted) == before + 3
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


@pytest.mark.parametrize("entry", [7, None, True, ["QA"], {"type": "function", "function": {"name": "QA"}}, "Oracle"])
async def test_a_wrong_tool_is_refused_in_the_words_of_rest(plain: Client, entry: Any) -> None:
    answer = await plain.gateway.http.post("/v1/completions", json={"prompt": "a", "tools": [entry]})
    error = answer.json()["error"]
    refusal = await plain.refused("a", tools=[entry])
    assert (refusal.message, refusal.fields, refusal.reason) == (error["message"], [error["param"]], error["code"])


async def test_reflection_describes_the_service(plain: Client) -> None:
    ask: Any = plain.channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    [answer] = [answer async for answer in ask(iter([asked]))]
    assert SERVICE in [service.name for service in answer.list_services_response.service]


async def test_a_port_that_is_taken_is_named(plain: Client) -> None:
    taken = plain.gateway.app.state.grpc_server.port
    app = create_app(scripted_backend, tools_at({}), GatewaySettings(grpc_port=taken))
    with pytest.raises(SettingsError, match=f"TOOLFORMER_GATEWAY_GRPC_PORT: .* port {taken}"):
        async with app.router.lifespan_context(app):
            pass


@pytest.mark.slow
async def test_a_process_whose_port_is_taken_says_so_in_a_line(plain: Client) -> None:
    taken = plain.gateway.app.state.grpc_server.port
    env = {"TOOLFORMER_GATEWAY_PORT": "0", "TOOLFORMER_GATEWAY_GRPC_PORT": str(taken)}
    async with started("inference_gateway", env=env) as server:
        await server.line_with(f"cannot listen on 127.0.0.1 port {taken}.*stop what uses it")
        assert await server.ended() == 1
    assert not any("Traceback" in line for line in server.lines["log"])


@pytest.mark.slow
async def test_sigterm_lets_running_completions_end(checkpoint: Path) -> None:
    """The real process: SIGTERM comes while a text streams, which then ends as if nothing had been."""
    env = {"TOOLFORMER_MODEL": str(checkpoint), "OMP_NUM_THREADS": "1"}
    env |= {"TOOLFORMER_GATEWAY_PORT": "0", "TOOLFORMER_GATEWAY_GRPC_PORT": "0"}
    async with started("inference_gateway", env=env) as server:
        address = (await server.line_with(r"listening for gRPC on (\S+)"))[1]
        await server.line_with("ready: model")
        async with grpc.aio.insecure_channel(address) as channel:
            request = CompletionRequest(prompt="Each of the", max_tokens=1500)
            request.tools.Clear()
            call = CompletionServiceStub(channel).Complete(request, timeout=60)
            events = [await anext(aiter(call))]
            server.process.send_signal(signal.SIGTERM)
            await server.line_with("draining")
            own_connection = [("grpc.use_local_subchannel_pool", 1)]
            async with grpc.aio.insecure_channel(address, options=own_connection) as late:
                await _until_refused(late)
            events += [event async for event in call]
        assert await server.ended() == 0
    assert events[-1].finished.finish_reason == "length"
    assert events[-1].finished.usage.completion_tokens == 1500
    assert not any("Traceback" in line or "ERROR" in line for line in server.lines["log"])


async def _until_refused(channel: grpc.aio.Channel) -> None:
    """Return once nothing listens any more; an RPC that meets the end of its connection may be cancelled before."""
    short = CompletionRequest(prompt="Each of the", max_tokens=1)
    async with asyncio.timeout(60):
        while True:
            try:
                _ = [event async for event in CompletionServiceStub(channel).Complete(short, timeout=10)]
            except grpc.aio.AioRpcError as refused:
                if refused.code() is grpc.StatusCode.UNAVAILABLE:
                    return


async def _read(call: Any) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        _ = [event async for event in call]
