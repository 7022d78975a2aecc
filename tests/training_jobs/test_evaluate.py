"""The evaluation over HTTP: a stand-in gateway that knows everything gets 100 %, one that says nothing gets 0 %."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI, Response

from demo_world.suites import SPLITS, TOOLS, Question, questions
from tests.training_jobs.servers import serve
from training_jobs.evaluate import GatewayTrouble, Score, as_json, as_table, evaluate, is_right, main

COUNT = 4
KNOWN = {
    (question.prompt, question.date.isoformat() if question.date else None): question
    for tool in TOOLS
    for split in SPLITS
    for question in questions(tool, split, count=COUNT)
}


def gateway(reply: Callable[[Question, bool], dict[str, Any]], *, ready: int = 200, status: int = 200) -> FastAPI:
    """A gateway whose answer to a question is ``reply(question, whether calls are enabled)``."""
    app = FastAPI()
    app.state.bodies = []

    @app.get("/ready")
    async def readiness() -> Response:
        return Response(status_code=ready)

    @app.post("/v1/completions")
    async def complete(body: dict[str, Any]) -> Response:
        app.state.bodies.append(body)
        question = KNOWN[body["prompt"], body.get("tool_context", {}).get("date")]
        choice = reply(question, "tools" not in body)
        return Response(json.dumps({"choices": [choice]}), status_code=status, media_type="application/json")

    return app


def perfect(question: Question, calls_enabled: bool) -> dict[str, Any]:
    if not calls_enabled:
        return {"text": " I do not know.", "tool_calls": []}
    call = {"tool": question.tool, "input": question.input, "output": question.answer, "error": None}
    return {"text": f" {question.answer} and so on.", "tool_calls": [call]}


def silent(question: Question, calls_enabled: bool) -> dict[str, Any]:
    return {"text": "", "tool_calls": []}


def failing_tool(question: Question, calls_enabled: bool) -> dict[str, Any]:
    call = {"tool": question.tool, "input": question.input, "output": None, "error": "timeout: too slow"}
    return {"text": " nothing", "tool_calls": [call]}


async def test_a_model_that_knows_everything_gets_all_points() -> None:
    app = gateway(perfect)
    with serve(app) as url:
        scores, answers = await evaluate(url, count=COUNT, api_top_k=3)
    assert [(score.tool, score.split) for score in scores] == [(tool, split) for split in SPLITS for tool in TOOLS]
    for score in scores:
        assert (score.right, score.right_disabled, score.called, score.failed) == (COUNT, 0, COUNT, 0)
        assert score.right_interval[1] == pytest.approx(1.0)
        assert score.disabled_interval[0] == pytest.approx(0.0)
    assert len(answers) == 2 * COUNT * len(scores)
    assert {body["api_top_k"] for body in app.state.bodies} == {3}
    assert all(body["temperature"] == 0 and body["show_calls"] is False for body in app.state.bodies)
    assert sum(body.get("tools") == [] for body in app.state.bodies) == len(answers) / 2


async def test_a_model_that_says_nothing_gets_none() -> None:
    with serve(gateway(silent)) as url:
        scores, _ = await evaluate(url, count=COUNT)
    assert all((score.right, score.right_disabled, score.called, score.failed) == (0, 0, 0, 0) for score in scores)


async def test_a_failed_call_is_no_call() -> None:
    with serve(gateway(failing_tool)) as url:
        scores, _ = await evaluate(url, count=COUNT)
    assert all(score.called == 0 for score in scores)


async def test_failed_requests_are_wrong_answers_and_counted() -> None:
    with serve(gateway(perfect, status=503)) as url:
        scores, answers = await evaluate(url, count=COUNT)
    assert all((score.right, score.failed) == (0, 2 * COUNT) for score in scores)
    assert answers[0].error.startswith("HTTP 503")


async def test_an_answer_of_another_shape_is_a_failed_request() -> None:
    with serve(gateway(lambda question, enabled: {"nonsense": 1})) as url:
        _, answers = await evaluate(url, count=COUNT)
    assert all("KeyError" in answer.error for answer in answers)


async def test_a_gateway_that_is_not_there_or_not_ready_is_named() -> None:
    with pytest.raises(GatewayTrouble, match=r"127\.0\.0\.1:9.*toolformer up"):
        await evaluate("http://127.0.0.1:9", count=1)
    with serve(gateway(silent, ready=503)) as url, pytest.raises(GatewayTrouble, match="503"):
        await evaluate(url, count=1)


def test_the_command_prints_a_table_and_writes_every_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.json"
    with serve(gateway(perfect)) as url:
        main(["--gateway", url, "--count", str(COUNT), "--out", str(out), "--k", "1"])
    printed = capsys.readouterr().out
    assert all(tool in printed for tool in TOOLS)
    assert "100%" in printed
    report = json.loads(out.read_text())
    assert report["settings"]["api_top_k"] == 1
    assert len(report["scores"]) == len(TOOLS) * len(SPLITS)
    assert len(report["answers"]) == 2 * COUNT * len(report["scores"])


def test_the_command_fails_loudly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--gateway", "http://127.0.0.1:9"])
    assert stopped.value.code == 1
    assert "cannot be reached" in capsys.readouterr().err
    with serve(gateway(perfect, status=500)) as url, pytest.raises(SystemExit) as stopped:
        main(["--gateway", url, "--count", str(COUNT)])
    assert stopped.value.code == 1
    assert "HTTP 500" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["--count", "0"])
    assert stopped.value.code == 2


def test_calculations_and_facts_have_their_own_rule() -> None:
    calculation = Question("2 + 2 =", "4", "Calculator", "2 + 2", None)
    fact = Question("The capital of Peru is", "Lima", "WikiSearch", "Peru capital", None)
    assert is_right(calculation, " 4.00")
    assert not is_right(calculation, " four, or 5")
    assert is_right(fact, " Lima.")
    assert not is_right(fact, " 1 2 3 4 5 Lima")


def test_scores_as_table_and_json() -> None:
    score = Score("Calculator", "held-out values", questions=100, right=80, right_disabled=5, called=97, failed=0)
    assert as_table([score]).row_count == 1
    assert as_json([score], [], seed=1)["scores"][0]["right_interval"] == pytest.approx((0.711, 0.867), abs=1e-3)
