"""The stage ``execute`` against real HTTP servers: answers, named errors, services that go away, kills."""

import asyncio
import datetime as dt
import json
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import wait_for
from tests.toolformer import tool_service
from tests.training_jobs.runner import forked
from toolformer.result_cache import MemoryCache
from toolformer.tool_client import ToolClient, ToolError
from toolformer.tools import Tool, ToolRegistry
from training_jobs.errors import StageError
from training_jobs.execute import asking
from training_jobs.execute.asking import Asking, ExecuteSettings, Question
from training_jobs.records import Annotated, Candidate, Document

PACKAGED = ToolRegistry.load(environ={})


def at(tool: str, url: str, **changes: Any) -> Tool:
    """A packaged tool, at another address."""
    return PACKAGED.get(tool).model_copy(update={"url": url, **changes})


async def ask(tool: Tool, questions: list[Question], said: list[str] | None = None, **how: Any) -> list[Any]:
    """Outputs, and codes of errors."""
    async with ToolClient(ToolRegistry([tool]), cache=MemoryCache()) as client:
        outcomes = await Asking(client, tool, (said if said is not None else []).append, ExecuteSettings(**how)).ask(
            questions
        )
    return [(outcome.code,) if isinstance(outcome, ToolError) else outcome for outcome in outcomes]


async def test_equal_calls_are_made_once_and_the_calendar_gets_the_date() -> None:
    async with tool_service.serve(tool_service.capitals("QA")) as service:
        tool = at("QA", service.url, max_batch=2)
        asked = [Question(text, day) for text in "abca" for day in (None, dt.date(2024, 2, 29))]
        assert await ask(tool, asked) == [output for output in "ABCA" for _ in range(2)]
        sent = [call for body in service.calls for call in body["calls"]]
        assert sorted(call["input"] for call in sent) == ["a", "b", "c"]
    async with tool_service.serve(tool_service.capitals("Calendar")) as service:
        days = [dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date(2024, 2, 29)]
        await ask(at("Calendar", service.url), [Question("", day) for day in days])
        sent = [call["context"]["date"] for body in service.calls for call in body["calls"]]
        assert sent == ["2024-02-29", "2024-03-01"]


async def test_a_call_that_breaks_its_batch_keeps_its_error_and_the_others_their_outputs() -> None:
    def make(body: Any) -> Any:
        calls = body.get("calls", [body])
        if any(call["input"] == "poison" for call in calls):
            return b"no JSON"
        answers = [tool_service.answer("QA", call) for call in calls]
        for call, answer in zip(calls, answers, strict=True):
            if call["input"] == "unknown":
                answer |= {"output": None, "error": {"code": "no_answer", "message": "nobody knows"}}
        return {"calls": answers} if "calls" in body else answers[0]

    async with tool_service.serve(tool_service.answers(make)) as service:
        outcomes = await ask(at("QA", service.url), [Question(text) for text in ("a", "poison", "unknown", "b")])
        assert outcomes == ["A", ("bad_response",), ("no_answer",), "B"]


async def test_an_address_of_something_else_ends_the_stage() -> None:
    async with tool_service.serve(tool_service.capitals("MT")) as service:
        with pytest.raises(StageError, match=r"is the service of 'MT', not of 'QA'\. Correct the address of QA"):
            await ask(at("QA", service.url), [Question(str(number)) for number in range(9)])


async def test_a_service_that_goes_away_in_the_middle_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_LOOK_EVERY_S", 0.05)
    said: list[str] = []
    questions = [Question(f"q{number}") for number in range(40)]
    well = [tool_service.capitals("QA")] * 5
    async with tool_service.serve(tool_service.in_turn(*well, tool_service.hang_up)) as service:
        tool = at("QA", service.url, max_batch=4)
        waiting = asyncio.ensure_future(ask(tool, questions, said))
        await asyncio.sleep(0.5)
    await asyncio.sleep(0.5)
    assert not waiting.done()
    async with tool_service.serve(tool_service.capitals("QA"), service.port):
        assert await asyncio.wait_for(waiting, 60) == [f"Q{number}" for number in range(40)]
    assert said[0].startswith("waiting for QA, 600 s at most: QA cannot be reached")
    assert said[-1].startswith("QA is back after ")


async def test_patience_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_LOOK_EVERY_S", 0.02)
    with pytest.raises(StageError, match=r"cannot be reached .* waited 0 s for it\. What was done is kept"):
        await ask(at("QA", "http://127.0.0.1:9"), [Question("a")], patience_s=0.1)


async def test_a_call_that_always_takes_too_long_keeps_that_as_its_error() -> None:
    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        if b"slow" in seen.body:
            await asyncio.Event().wait()
        await tool_service.capitals("QA")(seen, writer)

    async with tool_service.serve(behave) as service:
        tool = at("QA", service.url, timeout_s=0.15)
        assert await ask(tool, [Question("a"), Question("slow"), Question("b")]) == ["A", ("timeout",), "B"]


def annotated(run: Path, documents: int) -> None:
    """A run whose annotated documents have up to three calls each."""
    (run / "annotate").mkdir(parents=True)
    with (run / "annotate" / "QA.jsonl").open("w") as file:
        for number in range(documents):
            calls = tuple(Candidate(at, at, 0.5, f"why {number} {at}{number % 10}") for at in range(number % 4))
            file.write(Annotated(Document(f"d{number}", "A text."), "QA", calls, {"repeated": 1}).to_line())


@pytest.mark.slow
def test_a_service_that_comes_late_is_waited_for_by_the_command(tmp_path: Path) -> None:
    annotated(tmp_path, 12)
    environ, log = {"TOOLFORMER_TOOL_QA_URL": "http://127.0.0.1:9"}, tmp_path / "log"
    began = time.monotonic()
    arguments = ["--run", tmp_path, "--patience", "1.5"]
    said = forked.finish(forked.run("training_jobs.execute", arguments, environ, log), log, status=1)
    assert time.monotonic() - began > 1.5
    assert "execute QA: waiting for QA, " in said
    assert said.splitlines()[-1].endswith("What was done is kept: start the service and run again")
    assert not (tmp_path / "execute" / "QA.jsonl").exists()
    assert json.loads((tmp_path / "execute" / "QA.jsonl.parts" / "settings.json").read_text())["tool"] == "QA"


@pytest.mark.slow
async def test_a_service_that_is_down_in_mid_run_loses_no_document(tmp_path: Path) -> None:
    annotated(tmp_path / "whole", 60)
    annotated(tmp_path / "run", 60)

    async def slowly(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.02)
        await tool_service.capitals("QA")(seen, writer)

    def begin(run: str) -> BaseProcess:
        environ = {"TOOLFORMER_TOOL_QA_URL": f"http://127.0.0.1:{service.port}"}
        arguments = ["--run", tmp_path / run, "--chunk", 2]
        return forked.run("training_jobs.execute", arguments, environ, tmp_path / f"{run}.log")

    parts = tmp_path / "run" / "execute" / "QA.jsonl.parts"
    async with tool_service.serve(slowly) as service:
        await asyncio.to_thread(forked.finish, begin("whole"), tmp_path / "whole.log")
        running = begin("run")
        await asyncio.to_thread(wait_for, lambda: len(list(parts.glob("0*.jsonl"))) > 5)
    await asyncio.sleep(2)
    assert running.is_alive()
    assert not (tmp_path / "run" / "execute" / "QA.jsonl").exists()
    async with tool_service.serve(slowly, service.port):
        said = await asyncio.to_thread(forked.finish, running, tmp_path / "run.log")
    assert "execute QA: waiting for QA, 600 s at most: QA cannot be reached at http://127.0.0.1:" in said
    assert "execute QA: QA is back after " in said
    output = (tmp_path / "run" / "execute" / "QA.jsonl").read_bytes()
    assert output == (tmp_path / "whole" / "execute" / "QA.jsonl").read_bytes()
    assert b'"error":"' not in output
