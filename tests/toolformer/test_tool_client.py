"""Single calls: results, errors with names, one deadline, careful retries. Every server here is a real one."""

# ruff: noqa: ASYNC109 - a call's timeout is what is tested

import asyncio
import datetime as dt
import json
from collections.abc import Callable
from email.utils import format_datetime
from typing import Any

import pytest

from tests.support.redis_server import free_port
from tests.toolformer.tool_service import (
    Behaviour,
    Service,
    answer,
    answers,
    capitals,
    endless,
    hang_up,
    in_turn,
    response,
    sends,
    serve,
    silent,
    status,
)
from toolformer.tool_client import Readiness, RetryPolicy, ToolClient, ToolError, ToolResult
from toolformer.tools import Tool, ToolRegistry

DAY = dt.date(2026, 11, 20)
QUICK = RetryPolicy(backoff_s=0.001)
NOTICES_NOTHING = RetryPolicy(backoff_s=0.001, failure_threshold=1_000)


def tools(url: str, **changes: Any) -> ToolRegistry:
    """The packaged tools, all at ``url``."""
    registry = ToolRegistry.load(files=[], environ={})
    return ToolRegistry(Tool.model_validate(dict(t) | {"url": url} | changes) for t in registry)


def client_of(service: Service, **changes: Any) -> ToolClient:
    return ToolClient(tools(service.url, **changes), QUICK)


def error_body(code: str, message: str) -> bytes:
    """The error shape of every status that is not 200."""
    return json.dumps({"error": {"message": message, "type": "a_type", "param": None, "code": code}}).encode()


async def error_from(
    behave: Behaviour, *, timeout: float = 30, **changes: Any
) -> tuple[ToolError, ToolResult, Service]:
    """What a call to a service that behaves so ends in."""
    async with serve(behave) as service, client_of(service, **changes) as client:
        result = await client.call("Calculator", "1 + 1", timeout=timeout)
    assert not result.ok
    assert result.output is None
    assert result.error is not None
    return result.error, result, service


class TestAnswers:
    async def test_an_output(self) -> None:
        async with serve(capitals("WikiSearch")) as service, client_of(service) as client:
            result = await client.call("WikiSearch", 'l\'été "à" [Paris] -> \n(日本) 🙂')
        assert result.ok
        assert result.error is None
        assert (result.tool, result.output) == ("WikiSearch", 'L\'ÉTÉ "À" [PARIS] -> \n(日本) 🙂')
        assert (result.attempts, result.cached) == (1, False)
        assert result.duration_ms >= 0
        [seen] = service.seen
        assert (seen.method, seen.path) == ("POST", "/call")
        assert seen.headers["content-type"] == "application/json"
        assert seen.json == {"input": 'l\'été "à" [Paris] -> \n(日本) 🙂'}

    async def test_the_date_goes_only_to_tools_that_take_one(self) -> None:
        async with serve(capitals("Calendar")) as service, client_of(service) as client:
            await client.call("Calendar", "", date=DAY)
            await client.call("Calendar", "", date=dt.datetime(2026, 11, 20, 8, 30, tzinfo=dt.UTC))
            await client.call("Calendar", "")
            await client.call("Calculator", "", date=DAY)
        dated = {"input": "", "context": {"date": "2026-11-20"}}
        assert [seen.json for seen in service.seen] == [dated, dated, {"input": ""}, {"input": ""}]

    async def test_the_services_own_error_passes_through(self) -> None:
        error = {"code": "division_by_zero", "message": "cannot divide by zero"}
        got, result, _ = await error_from(answers(lambda j: answer("Calculator", j, output=None, error=error)))
        assert got == ToolError("division_by_zero", "cannot divide by zero")
        assert result.attempts == 1

    async def test_an_empty_output_is_an_output(self) -> None:
        async with (
            serve(answers(lambda j: answer("Calculator", j, output=""))) as service,
            client_of(service) as client,
        ):
            assert (await client.call("Calculator", "1")).output == ""

    async def test_a_path_in_the_url_is_kept(self) -> None:
        async with serve(capitals("Calculator")) as service, ToolClient(tools(f"{service.url}/tools/sums/")) as client:
            await client.call("Calculator", "1")
        assert service.seen[0].path == "/tools/sums/call"

    async def test_one_connection_serves_calls_in_a_row(self) -> None:
        ports = set()

        async def behave(seen: Any, writer: asyncio.StreamWriter) -> None:
            ports.add(writer.get_extra_info("peername")[1])
            await capitals("Calculator")(seen, writer)

        async with serve(behave) as service, client_of(service) as client:
            for _ in range(3):
                assert (await client.call("Calculator", "1")).ok
        assert len(ports) == 1


class TestWhatIsNotSent:
    async def test_an_unknown_tool(self) -> None:
        async with ToolClient(tools("http://127.0.0.1:9")) as client:
            result = await client.call("Abacus", "1")
        assert result.error == ToolError(
            "unknown_tool", "there is no tool 'Abacus'; the tools are: Calculator, Calendar, WikiSearch, QA, MT"
        )
        assert (result.tool, result.input, result.attempts) == ("Abacus", "1", 0)

    async def test_an_input_that_is_no_text(self) -> None:
        async with serve(capitals("Calculator")) as service, client_of(service) as client:
            result = await client.call("Calculator", "\ud83d")
        assert result.error is not None
        assert result.error.code == "invalid_input"
        assert service.seen == []

    @pytest.mark.parametrize("timeout", [float("nan"), float("inf")])
    async def test_a_timeout_that_never_comes_is_refused(self, timeout: float) -> None:
        async with ToolClient(tools("http://127.0.0.1:9")) as client:
            with pytest.raises(ValueError, match="timeout must be a finite number"):
                await client.call("Calculator", "1", timeout=timeout)
            with pytest.raises(ValueError, match="timeout must be a finite number"):
                await client.call_many("Calculator", ["1"], timeout=timeout)

    async def test_only_trace_and_request_ids_are_passed_on(self) -> None:
        sent = {
            "Traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "X-Request-Id": "r-1",
            "Authorization": "Bearer secret",
            "Host": "elsewhere",
            "Content-Length": "0",
            "tracestate": "a\r\nX-Evil: 1",
        }
        async with serve(capitals("Calculator")) as service, client_of(service) as client:
            assert (await client.call("Calculator", "1", headers=sent)).ok
        [seen] = service.seen
        assert seen.headers["traceparent"] == sent["Traceparent"]
        assert seen.headers["x-request-id"] == "r-1"
        assert seen.headers["host"] == service.url.removeprefix("http://")
        assert not {"authorization", "tracestate", "x-evil"} & seen.headers.keys()

    async def test_what_a_tool_sets_travels_to_no_tool(self) -> None:
        sets = sends(response(503, error_body("busy", "later"), {"Set-Cookie": "who=alice; Path=/; Max-Age=999"}))
        async with serve(in_turn(sets, capitals("Calculator"))) as service, client_of(service) as client:
            assert (await client.call("Calculator", "1")).ok
        assert len(service.seen) == 2
        assert not any("cookie" in seen.headers for seen in service.seen)

    async def test_no_proxy_of_the_environment_sees_a_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with serve(status(200)) as proxy, serve(capitals("Calculator")) as service:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            async with client_of(service) as client:
                assert (await client.call("Calculator", "1")).ok
            assert proxy.seen == []

    async def test_a_client_that_was_not_entered_says_so(self) -> None:
        with pytest.raises(RuntimeError, match="async with"):
            await ToolClient(tools("http://127.0.0.1:9")).call("Calculator", "1")


GARBAGE: dict[str, Callable[[Any], Any]] = {
    "not JSON": lambda _: b"<html>hello</html>",
    "nothing": lambda _: b"",
    "not UTF-8": lambda _: b'{"tool": "\xff"}',
    "a list": lambda j: [answer("Calculator", j)],
    "deep": lambda _: b"[" * 100_000,
    "no output field": lambda j: {"tool": "Calculator", "input": j["input"], "error": None},
    "neither": lambda j: answer("Calculator", j, output=None),
    "both": lambda j: answer("Calculator", j, error={"code": "a", "message": "b"}),
    "a number": lambda j: answer("Calculator", j, output=2),
    "another tool": lambda j: answer("WikiSearch", j),
    "another input": lambda j: answer("Calculator", j, input="2 + 2"),
    "a code that is a text": lambda j: answer("Calculator", j, output=None, error={"code": "a b", "message": ""}),
    "half a surrogate pair": lambda _: b'{"tool": "Calculator", "input": "1 + 1", "output": "\\ud83d", "error": null}',
}


class TestBadAnswers:
    @pytest.mark.parametrize("make", GARBAGE.values(), ids=GARBAGE.keys())
    async def test_what_is_not_the_contracts_is_a_bad_response_and_not_asked_for_again(
        self, make: Callable[[Any], Any]
    ) -> None:
        error, result, service = await error_from(answers(make))
        assert error.code == "bad_response"
        assert result.attempts == len(service.seen) == 1

    async def test_a_body_without_end_is_cut_off(self) -> None:
        error, _, _ = await error_from(endless)
        assert error == ToolError("too_large", "the answer has more than 262,144 bytes")

    async def test_the_largest_body_allowed(self) -> None:
        body = b'{"tool": "Calculator", "input": "1", "output": "2", "error": null}'
        async with serve(sends(response(200, body))) as service:
            async with ToolClient(tools(service.url), max_response_bytes=len(body)) as client:
                assert (await client.call("Calculator", "1")).ok
            async with ToolClient(tools(service.url), max_response_bytes=len(body) - 1) as client:
                error = (await client.call("Calculator", "1")).error
        assert error is not None
        assert error.code == "too_large"

    async def test_a_compressed_body_is_refused(self) -> None:
        error, _, service = await error_from(status(200, {"Content-Encoding": "gzip"}, b"\x1f\x8b"))
        assert error.code == "bad_response"
        assert service.seen[0].headers["accept-encoding"] == "identity"

    async def test_a_redirect_is_not_followed(self) -> None:
        async with serve(capitals("Calculator")) as elsewhere:
            error, _, _ = await error_from(status(307, {"Location": f"{elsewhere.url}/call"}))
            assert elsewhere.seen == []
        assert error.code == "bad_response"
        assert "redirects are not followed" in error.message

    @pytest.mark.parametrize("code", [204, 404, 422, 429, 500, 502])
    async def test_another_status(self, code: int) -> None:
        error, result, _ = await error_from(status(code))
        assert error.code == "bad_response"
        assert f"HTTP {code}" in error.message
        assert result.attempts == 1

    async def test_another_status_that_gives_its_reason(self) -> None:
        error, _, _ = await error_from(status(413, body=error_body("body_too_large", "too big")))
        assert error == ToolError("body_too_large", "too big (HTTP 413)")


class TestRetries:
    @pytest.mark.parametrize("trouble", [hang_up, status(503), status(503, {"Retry-After": "0"})])
    async def test_a_pure_tool_is_asked_again(self, trouble: Behaviour) -> None:
        async with serve(in_turn(trouble, capitals("Calculator"))) as service, client_of(service) as client:
            result = await client.call("Calculator", "one")
        assert (result.output, result.attempts, len(service.seen)) == ("ONE", 2, 2)

    @pytest.mark.parametrize(("trouble", "code"), [(hang_up, "unreachable"), (status(503), "busy")])
    async def test_but_only_so_often(self, trouble: Behaviour, code: str) -> None:
        error, result, service = await error_from(trouble)
        assert error.code == code
        assert result.attempts == len(service.seen) == 3

    @pytest.mark.parametrize(("trouble", "code"), [(hang_up, "unreachable"), (status(503), "busy")])
    async def test_a_tool_that_is_not_pure_is_asked_once(self, trouble: Behaviour, code: str) -> None:
        error, result, service = await error_from(trouble, pure=False)
        assert error.code == code
        assert result.attempts == len(service.seen) == 1

    async def test_a_service_that_is_not_there(self) -> None:
        async with ToolClient(tools(f"http://127.0.0.1:{free_port()}"), QUICK) as client:
            result = await client.call("Calculator", "1")
        assert result.error is not None
        assert result.error.code == "unreachable"
        assert "is its service up?" in result.error.message
        assert result.attempts == 3

    async def test_a_server_that_speaks_another_protocol(self) -> None:
        error, _, _ = await error_from(sends(b"220 mail.example ESMTP\r\n\r\n"))
        assert error.code == "unreachable"

    async def test_an_answer_that_breaks_off(self) -> None:
        async def half(_: object, writer: asyncio.StreamWriter) -> None:
            writer.write(response(200, b'{"tool": "Calculator"}')[:-5])
            await writer.drain()
            raise ConnectionError

        error, result, _ = await error_from(half)
        assert error.code == "unreachable"
        assert result.attempts == 3

    @pytest.mark.parametrize(
        "retry_after",
        ["3600", format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1), usegmt=True)],
        ids=["seconds", "date"],  # names that every process of a parallel run gives
    )
    async def test_a_wait_beyond_the_deadline_is_not_begun(self, retry_after: str) -> None:
        error, result, _ = await error_from(status(503, {"Retry-After": retry_after}))
        assert error.code == "busy"
        assert result.attempts == 1

    async def test_the_services_reason_for_being_busy_is_reported(self) -> None:
        error, _, _ = await error_from(status(503, body=error_body("not_ready", "the index is being built")))
        assert error == ToolError("busy", "the index is being built")


class TestRetryPolicy:
    def test_each_wait_is_about_twice_the_last_and_half_of_it_is_chance(self) -> None:
        policy = RetryPolicy(backoff_s=0.1)
        for attempts in (1, 2, 3):
            waits = {policy.pause_s(attempts, 0.0) for _ in range(50)}
            longest = 0.1 * 2 ** (attempts - 1)
            assert longest / 2 <= min(waits) < max(waits) <= longest

    def test_the_service_may_ask_for_a_longer_one(self) -> None:
        assert RetryPolicy().pause_s(1, 7.0) == 7.0

    @pytest.mark.parametrize(("field", "value"), [("max_attempts", 0), ("backoff_s", -1), ("backoff_s", float("nan"))])
    def test_senseless_values(self, field: str, value: Any) -> None:
        with pytest.raises(ValueError, match=field):
            RetryPolicy(**{field: value})


class TestDeadline:
    async def test_a_silent_service(self) -> None:
        error, result, service = await error_from(silent, timeout=0.5)
        assert error == ToolError("timeout", "Calculator did not answer within 0.5 s")
        assert result.attempts == len(service.seen) == 1

    async def test_the_tools_own_timeout_is_the_default(self) -> None:
        async with serve(silent) as service, client_of(service, timeout_s=0.05) as client:
            result = await client.call("Calculator", "1")
        assert result.error == ToolError("timeout", "Calculator did not answer within 0.05 s")

    async def test_a_body_that_trickles(self) -> None:
        error, _, _ = await error_from(_trickle, timeout=0.1)
        assert error.code == "timeout"

    async def test_it_covers_all_attempts_together(self) -> None:
        error, result, _ = await error_from(in_turn(hang_up, silent), timeout=1.0)
        assert error.code == "timeout"
        assert result.attempts == 2

    async def test_a_time_that_is_up_already(self) -> None:
        error, _, _ = await error_from(capitals("Calculator"), timeout=-1)
        assert error.code == "timeout"

    async def test_a_caller_who_leaves_is_let_go_and_so_is_the_service(self) -> None:
        async with serve(silent) as service, client_of(service) as client:
            calling = asyncio.create_task(client.call("Calculator", "1", timeout=60))
            await service.arrived.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await service.client_left.wait()


async def _trickle(_: object, writer: asyncio.StreamWriter) -> None:
    """An answer that goes on and on, each byte soon after the last: no time between bytes is ever long."""
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.005)


class TestReady:
    async def test_ready(self) -> None:
        async with serve(status(200, body=b'{"status": "ready"}')) as service, client_of(service) as client:
            assert await client.ready("Calculator") == Readiness(True)
        assert [(seen.method, seen.path) for seen in service.seen] == [("GET", "/ready")]

    async def test_not_ready(self) -> None:
        async with (
            serve(status(503, body=error_body("not_ready", "the index is being built"))) as service,
            client_of(service) as client,
        ):
            ready = await client.ready("Calculator")
        assert not ready
        assert ready.reason == "the index is being built"

    async def test_silent(self) -> None:
        async with serve(silent) as service, client_of(service) as client:
            ready = await client.ready("Calculator", timeout=0.05)
        assert not ready
        assert "did not answer within 0.05 s" in ready.reason

    async def test_not_there(self) -> None:
        async with ToolClient(tools(f"http://127.0.0.1:{free_port()}")) as client:
            ready = await client.ready("Calculator")
        assert not ready
        assert "cannot be reached" in ready.reason

    async def test_unknown(self) -> None:
        async with ToolClient(tools("http://127.0.0.1:9")) as client:
            assert "there is no tool 'Abacus'" in (await client.ready("Abacus")).reason


class TestResult:
    @pytest.mark.parametrize(("output", "error"), [(None, None), ("2", ToolError("a", "b"))])
    def test_it_has_exactly_one_of_output_and_error(self, output: str | None, error: ToolError | None) -> None:
        with pytest.raises(ValueError, match="either an output or an error"):
            ToolResult("Calculator", "1 + 1", output, error, duration_ms=0.0, attempts=1)
