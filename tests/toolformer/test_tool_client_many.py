"""Many calls at once, and answers that are kept."""

import asyncio
import datetime as dt
import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toolformer.test_tool_client import DAY, client_of, tools
from tests.toolformer.tool_service import Seen, answer, answers, capitals, hang_up, in_turn, serve, silent
from toolformer.tool_client import ToolClient, ToolError, ToolResult
from toolformer.tool_wire import Failed, Request, call_body, calls_body, check_status, read_answer, refusal

LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=255))
LIKE_A_DATE = st.from_regex(
    r"[A-Z][a-z]{2}, [0-9]{1,25} Jan [0-9]{1,25} [0-9]{1,25}:[0-9]{2}:[0-9]{2} ([+-][0-9]{1,25}|GMT)", fullmatch=True
)


def outputs(results: list[ToolResult]) -> list[str | None]:
    return [result.output for result in results]


def codes(results: list[ToolResult]) -> list[str | None]:
    return [result.error.code if result.error else None for result in results]


class TestMany:
    async def test_results_come_in_order_from_full_batches(self) -> None:
        inputs = [f"input {number}" for number in range(11)]
        async with serve(capitals("Calculator")) as service, client_of(service, max_batch=4) as client:
            results = await client.call_many("Calculator", inputs)
        assert outputs(results) == [text.upper() for text in inputs]
        assert {seen.path for seen in service.seen} == {"/calls"}
        assert sorted(len(seen.json["calls"]) for seen in service.seen) == [3, 4, 4]

    async def test_no_inputs_ask_nothing(self) -> None:
        async with serve(capitals("Calculator")) as service, client_of(service) as client:
            assert await client.call_many("Calculator", []) == []
            assert await client.call_many("Abacus", []) == []
        assert service.seen == []

    async def test_no_more_batches_than_allowed_are_under_way(self) -> None:
        under_way, most, three = 0, 0, asyncio.Event()

        async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            if under_way == 3:
                three.set()
            await three.wait()
            # Any further batch that was let through would arrive by now.
            for _ in range(20):
                await asyncio.sleep(0)
            under_way -= 1
            await capitals("Calculator")(seen, writer)

        async with serve(behave) as service, client_of(service, max_batch=1) as client:
            results = await client.call_many("Calculator", ["a"] * 9, concurrency=3, timeout=30)
        assert all(result.ok for result in results)
        assert most == 3

    async def test_one_date_or_one_each(self) -> None:
        each = [DAY, None, dt.date(2020, 2, 29)]
        async with serve(capitals("Calendar")) as service, client_of(service) as client:
            await client.call_many("Calendar", ["", "", ""], dates=each)
            await client.call_many("Calendar", ["", ""], dates=DAY)
        sent = [[call.get("context") for call in seen.json["calls"]] for seen in service.seen]
        first, second, third = {"date": "2026-11-20"}, None, {"date": "2020-02-29"}
        assert sent == [[first, second, third], [first, first]]

    @pytest.mark.parametrize(("kind", "changes"), [("dates", {"dates": [DAY]}), ("concurrency", {"concurrency": 0})])
    async def test_senseless_arguments(self, kind: str, changes: dict[str, Any]) -> None:
        async with ToolClient(tools("http://127.0.0.1:9")) as client:
            with pytest.raises(ValueError, match=kind):
                await client.call_many("Calendar", ["", ""], **changes)

    async def test_each_call_has_its_own_error(self) -> None:
        error = {"code": "no_result", "message": "nothing found"}

        def make(body: Any) -> Any:
            good, bad = body["calls"]
            return {"calls": [answer("WikiSearch", good), answer("WikiSearch", bad, output=None, error=error)]}

        async with serve(answers(make)) as service, client_of(service) as client:
            good, bad = await client.call_many("WikiSearch", ["good", "bad"])
        assert good.output == "GOOD"
        assert bad.error == ToolError("no_result", "nothing found")

    @pytest.mark.parametrize(
        "spoil", [lambda calls: calls[::-1], lambda calls: calls[1:], lambda calls: [*calls, calls[0]]]
    )
    async def test_answers_out_of_place_are_not_trusted(self, spoil: Any) -> None:
        make = answers(lambda body: {"calls": spoil([answer("Calculator", call) for call in body["calls"]])})
        async with serve(make) as service, client_of(service) as client:
            assert codes(await client.call_many("Calculator", ["a", "b", "c"])) == ["bad_response"] * 3

    async def test_a_batch_that_fails_leaves_the_others_alone(self) -> None:
        async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
            await (silent if b"c" in seen.body.split(b'"calls"')[1] else capitals("Calculator"))(seen, writer)

        async with serve(behave) as service, client_of(service, max_batch=2) as client:
            results = await client.call_many("Calculator", ["a", "b", "c", "d", "e"], timeout=1.0)
        assert outputs(results) == ["A", "B", None, None, "E"]
        assert codes(results) == [None, None, "timeout", "timeout", None]

    async def test_what_cannot_be_sent_keeps_its_place(self) -> None:
        async with serve(capitals("Calculator")) as service, client_of(service) as client:
            results = await client.call_many("Calculator", ["a", "\udc00", "b"])
        assert outputs(results) == ["A", None, "B"]
        assert codes(results) == [None, "invalid_input", None]

    async def test_an_unknown_tool(self) -> None:
        async with ToolClient(tools("http://127.0.0.1:9")) as client:
            assert codes(await client.call_many("Abacus", ["1", "2"])) == ["unknown_tool"] * 2

    async def test_a_batch_is_tried_again_as_a_whole(self) -> None:
        async with serve(in_turn(hang_up, capitals("Calculator"))) as service, client_of(service) as client:
            results = await client.call_many("Calculator", ["a", "b"])
        assert outputs(results) == ["A", "B"]
        assert [result.attempts for result in results] == [2, 2]

    async def test_a_caller_who_leaves_is_let_go(self) -> None:
        async with serve(silent) as service, client_of(service) as client:
            calling = asyncio.create_task(client.call_many("Calculator", ["a"], timeout=60))
            await service.arrived.wait()
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await service.client_left.wait()


class TestOnTheWire:
    """What holds for any text and any bytes, without a server."""

    @given(st.text(), st.none() | st.dates())
    def test_any_text_is_either_refused_or_sent_unchanged(self, text: str, date: dt.date | None) -> None:
        tool = tools("http://127.0.0.1:9").get("Calendar")
        request = Request(text, date)
        if refusal(tool, request) is not None:
            assert any("\ud800" <= character <= "\udfff" for character in text)
            return
        sent = json.loads(call_body(tool, request))
        assert sent["input"] == text
        assert sent.get("context") == (None if date is None else {"date": date.isoformat()})
        assert json.loads(calls_body(tool, [request, request])) == {"calls": [sent, sent]}
        back = json.dumps({"tool": "Calendar", "input": text, "output": text, "error": None}).encode()
        assert read_answer(tool, request, back) == text

    @given(st.binary())
    def test_any_bytes_are_an_answer_or_a_named_failure(self, body: bytes) -> None:
        tool = tools("http://127.0.0.1:9").get("Calculator")
        with pytest.raises(Failed) as caught:
            read_answer(tool, Request("1"), body)
        assert caught.value.error.code == "bad_response"

    @given(LATIN | st.integers().map(str) | LIKE_A_DATE)
    def test_any_retry_after_is_a_time_to_wait(self, value: str) -> None:
        response = httpx.Response(503, headers=[(b"Retry-After", value.encode("latin-1"))])
        with pytest.raises(Failed) as caught:
            check_status(response, b"")
        assert caught.value.retry_after_s >= 0.0
