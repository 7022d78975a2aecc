"""The soak notices what it is there to notice, and a small one finds nothing."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving.stream import Connections
from benchmarks.soak import PRESSURE, found
from benchmarks.soaking import client
from benchmarks.soaking.client import Client, Tally
from benchmarks.soaking.watch import HELD, middle_and_end
from benchmarks.soaking.wishes import FAULTS, Leave, Wish, Wishes
from tests.benchmarks.test_small_runs import reported
from tests.toolformer import tool_service

CALL = {"tool": "Calculator", "input": "1 + 1", "output": "2", "error": None}
USAGE = {"choices": [], "usage": {"completion_tokens": 3}}


def chunk(text: str = "", index: int = 0, end: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": index, "text": text, "finish_reason": end, **more}
    return {"choices": [choice | ({"tool_calls": [], "timed_out": False} if end and not more else {})]}


def stream(*events: Mapping[str, Any], done: bool = True) -> bytes:
    """An event stream as the gateway sends it."""
    pieces = [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"] * done
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"


GOOD = [chunk(" One"), chunk(" two", end="stop"), USAGE]


async def asked(behave: tool_service.Behaviour, completions: int = 1, leave: Leave | None = None) -> Tally:
    """What a client tallies of one streamed request to a server that behaves so."""
    tally = Tally()
    async with tool_service.serve(behave) as server, Connections(server.url) as connections:
        wish = Wish(7, {"prompt": "Zero", "stream": True}, completions, "none", leave)
        await Client(server.url, connections, tally).ask(wish)
    assert sum(count for name, count in tally.outcomes.items() if ":" not in name) == 1
    return tally


async def test_a_good_answer_is_no_fault() -> None:
    tally = await asked(tool_service.sends(stream(*GOOD)))
    assert (tally.answered, tally.faults) == (1, [])
    assert tally.outcomes == Counter({"answered": 1, "completion: stop": 1})
    refused = await asked(tool_service.status(503, body=b"{}"))
    assert (refused.outcomes, refused.faults) == (Counter({"refused": 1}), [])


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (stream(*GOOD[:2], chunk(end="stop"), USAGE), "malformed"),
        (stream(*GOOD[:2], chunk(" three"), USAGE), "malformed"),
        (stream(chunk(" One"), USAGE), "malformed"),
        (stream(*GOOD, done=False), "malformed"),
        (stream(*GOOD[:2]), "malformed"),
        (stream(*GOOD[:1], {"error": {"message": "the model failed"}}), "malformed"),
        (stream(chunk(" x", end="stop", tool_calls=[{**CALL, "output": None}], timed_out=False), USAGE), "malformed"),
        (stream(chunk(" x", end="stop", tool_calls=[CALL], timed_out=False), USAGE), "malformed"),
        (tool_service.response(500, b"{}"), "failed"),
    ],
)
async def test_an_answer_that_should_not_be_is_a_fault(answer: bytes, outcome: str) -> None:
    tally = await asked(tool_service.sends(answer))
    assert list(tally.outcomes) == [*[name for name in tally.outcomes if ":" in name], outcome]
    assert [fault.partition(": ")[2].partition(":")[0] for fault in tally.faults] == [outcome]
    assert tally.answered == 0


async def test_a_completion_without_an_end_is_a_fault() -> None:
    assert len((await asked(tool_service.sends(stream(*GOOD)), completions=2)).faults) == 1


async def test_answers_that_break_off_or_never_end_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    async def breaks_off(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        await tool_service.sends(stream(*GOOD)[:-40])(seen, writer)
        await tool_service.hang_up(seen, writer)

    assert (await asked(breaks_off)).outcomes == Counter({"lost": 1})
    monkeypatch.setattr(client, "REQUEST_SECONDS", 0.05)
    assert (await asked(tool_service.silent)).outcomes == Counter({"hung": 1})


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("leave", [Leave(events=0), Leave(events=1), Leave(at_call=True)])
async def test_clients_leave_when_they_should(leave: Leave, reset: bool) -> None:
    called = chunk(tool_event={"type": "call_started"})
    gone = await asked(
        tool_service.sends(stream(*GOOD[:1], called)[:-20]), leave=Leave(leave.events, leave.at_call, reset=reset)
    )
    assert (gone.outcomes, gone.faults) == (Counter({"left": 1}), [])


def test_wishes_are_the_same_for_the_same_seed_and_of_every_kind() -> None:
    makers = [Wishes(seed) for seed in (1, 1, 2)]
    wishes, again, others = ([maker.wish(number) for number in range(600)] for maker in makers)
    assert wishes == again
    assert wishes != others
    assert {wish.fault for wish in wishes} == {"none", *FAULTS}
    leaves = [wish.leave for wish in wishes if wish.leave]
    assert {(leave.at_call, leave.reset) for leave in leaves} == {(a, b) for a in (True, False) for b in (True, False)}
    assert any(leave.seconds is not None for leave in leaves)
    equal = [wish for wish in wishes if wish.same_as]
    assert len({wish.same_as for wish in equal}) < len(equal) / 2
    assert all(wish.body["tools"] == [] and wish.leave is None for wish in equal)


def bill(**changes: Any) -> dict[str, Any]:
    """The report of a soak in which all went well, with ``changes``."""
    good = {
        "held": dict.fromkeys(HELD, 0.0),
        "pressure": dict.fromkeys(PRESSURE, 1.0),
        "server": {"stop": 6.0, "length": 2.0, "timeout": 0.0, "error": 0.0, "cancelled": 2.0, "refused": 0.0},
        "open_files": [14, 20],
        "memory_mib": {"middle": 400.0, "end": 410.0},
    }
    return good | changes


def wrongs(report: dict[str, Any], texts: Sequence[str] = ("a",), sent: int = 10) -> list[str]:
    return found(report, Tally(answered=8, sent=sent, texts={"plain 1": Counter(texts)}))


def test_the_bill_names_what_is_wrong() -> None:
    assert wrongs(bill(), sent=5_000) == []
    changes: list[tuple[dict[str, Any], str]] = [
        ({"held": {**bill()["held"], "kv_held_bytes": 8.0}}, "kv_held_bytes"),
        ({"pressure": {**bill()["pressure"], PRESSURE[0]: 0.0}}, PRESSURE[0]),
        ({"server": {**bill()["server"], "error": 1.0}}, "log"),
        ({"server": {**bill()["server"], "stop": 5.0}}, "8 of them answered"),
        ({"server": {**bill()["server"], "cancelled": 2_000_000.0}}, "ends of"),
        ({"open_files": [14, 500]}, "500"),
        ({"memory_mib": {"middle": 400.0, "end": 430.0}}, "430 MiB"),
    ]
    for change, named in changes:
        [wrong] = wrongs(bill(**change), sent=5_000)
        assert named in wrong
    [wrong] = wrongs(bill(), texts="ab")
    assert "2 texts" in wrong


def test_memory_is_compared_once_caches_are_full() -> None:
    samples = [(served, 300.0 + min(served, 200)) for served in range(0, 1_001, 10)]
    assert middle_and_end(samples) == (500.0, 500.0)
    assert middle_and_end([(served, float(served)) for served in range(0, 1_001, 10)]) == (300.0, 900.0)
    with pytest.raises(ValueError, match="too few"):
        middle_and_end([(10, 300.0)] * 3 + [(0, 200.0)])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_small_soak(tmp_path: Path) -> None:
    report = reported(tmp_path, "soak", "--completions", "400")
    assert report["faults"] == []
    assert report["outcomes"]["left"] > 10
    assert {"timeout", "unreachable", "bad_response", "ok"} <= report["calls"].keys()
