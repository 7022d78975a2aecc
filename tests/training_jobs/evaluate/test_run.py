"""Asking over HTTP: what is sent, what counts, what fails, and what a killed run finds again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from demo_world.suites import SPLITS, TOOLS
from tests.support.waiting import wait_for
from tests.training_jobs.evaluate.stand_in import only_with_calls, perfect, served, silent, trouble
from tests.training_jobs.runner import forked
from training_jobs.evaluate.__main__ import main
from training_jobs.evaluate.answers import Answer, read_records
from training_jobs.evaluate.example import Example
from training_jobs.evaluate.suites import SUITES

COUNT = 3
SUITE = SUITES["tools-Calculator"]


def examples(count: int = COUNT, suite: str = "tools-Calculator") -> tuple[Example, ...]:
    return SUITES[suite].load(None, count=count, seed=0).examples


def run(url: str, *arguments: str, suites: str = "tools-Calculator", count: int = COUNT) -> int:
    """The command's exit status."""
    try:
        main(["--gateway", url, "--suites", suites, "--count", str(count), *arguments])
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def results(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "results.json").read_text())
    return found


def test_calls_are_enabled_disabled_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(only_with_calls(perfect(SUITE, examples()))) as (url, bodies):
        status = run(url, "--k", "0", "3", "10", "--max-calls", "1", "2", "--out", str(tmp_path))
    assert status == 0
    n = 2 * COUNT
    scores = {score["condition"]: score for score in results(tmp_path)["scores"]}
    assert list(scores) == ["disabled", "k = 3", "k = 3, 2 calls", "k = 10", "k = 10, 2 calls"]
    assert scores.pop("disabled")["all"] == {
        "right": 0,
        "n": n,
        "share": 0,
        "interval": pytest.approx([0, 0.39], abs=0.01),
    }
    for score in scores.values():
        assert (score["all"]["right"], score["called"]) == (n, {"Calculator": n})
        assert score["with_calls"]["n"] == n
        assert {split: share["right"] for split, share in score["splits"].items()} == dict.fromkeys(SPLITS, COUNT)
    enabled = [body for body in bodies if body["tools"]]
    assert len(bodies) == 5 * n
    assert len(enabled) == 4 * n
    assert {(body["api_top_k"], body["max_calls"]) for body in enabled} == {(3, 1), (3, 2), (10, 1), (10, 2)}
    assert all(body["temperature"] == 0 and body["show_calls"] is False for body in bodies)
    printed = capsys.readouterr().out
    for text in ("100.0", "stand-in (disabled)", "stand-in, k = 3", "Calculator", "table 9"):
        assert text in printed


def test_every_tool_of_the_bundled_table_is_there() -> None:
    assert {name for name in SUITES if name.startswith("tools-")} == {f"tools-{tool}" for tool in TOOLS}
    calendar = examples(suite="tools-Calendar")
    with served(perfect(SUITES["tools-Calendar"], calendar)) as (url, bodies):
        assert run(url, suites="tools-Calendar") == 0
    dates = {example.date.isoformat() for example in calendar if example.date}
    assert {body["tool_context"]["date"] for body in bodies} == dates


def test_a_barred_tool_is_not_offered(tmp_path: Path) -> None:
    with served(silent) as (url, bodies):
        assert run(url, "--k", "10", suites="own-questions") == 0
        assert {tuple(body["tools"]) for body in bodies} == {("Calculator", "Calendar", "WikiSearch", "MT")}
        assert run(url, "--k", "10", "--tools", "QA", "Calculator", suites="own-dates", count=1) == 0
    assert bodies[-1]["tools"] == ["QA", "Calculator"]


def test_a_call_that_failed_is_no_call(tmp_path: Path) -> None:
    call = {"tool": "Calculator", "input": "1", "output": None, "error": "timeout: too slow"}
    with served(lambda body: {"text": " nothing", "tool_calls": [call]}) as (url, _):
        assert run(url, "--k", "10", "--out", str(tmp_path)) == 0
    [score] = results(tmp_path)["scores"]
    assert score["called"] == {}
    assert score["with_calls"]["n"] == 0


def test_what_passes_is_asked_again(tmp_path: Path) -> None:
    seen: dict[str, int] = {}
    good = perfect(SUITE, examples())

    def moody(body: dict[str, Any]) -> Any:
        seen[body["prompt"]] = times = seen.get(body["prompt"], 0) + 1
        return trouble(503, "busy", **{"Retry-After": "0.01"}) if times < 3 else good(body)

    with served(moody) as (url, _):
        assert run(url, "--k", "10", "--out", str(tmp_path)) == 0
    assert results(tmp_path)["scores"][0]["all"]["share"] == 1
    assert set(seen.values()) == {3}


def test_failed_requests_are_reported_and_made_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = examples()[0].text
    good = perfect(SUITE, examples())

    def reply(body: dict[str, Any]) -> Any:
        return trouble(500, "it broke") if body["prompt"] == broken else good(body)

    out = ("--k", "10", "--out", str(tmp_path), "--attempts", "1")
    with served(reply) as (url, _):
        assert run(url, *out) == 1
    assert "1 requests failed, the first with: HTTP 500: it broke" in capsys.readouterr().err
    [score] = results(tmp_path)["scores"]
    assert (score["failed"], score["all"]["right"], score["all"]["n"]) == (1, 2 * COUNT - 1, 2 * COUNT)
    with served(good) as (url, bodies):
        assert run(url, *out) == 0
    assert [body["prompt"] for body in bodies] == [broken]
    assert results(tmp_path)["scores"][0]["all"]["share"] == 1


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"nonsense": 1}, "OpenAI's shape"),
        ({"text": None}, "OpenAI's shape"),
        ({"text": " 1", "timed_out": True}, "time limit"),
        ({"text": " 1", "tool_calls": [{"tool": "QA"}]}, "OpenAI's shape"),
    ],
)
def test_an_answer_that_is_none_is_a_failed_request(
    choice: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(lambda body: choice) as (url, _):
        assert run(url, "--k", "10", count=1) == 1
    assert message in capsys.readouterr().err


def test_a_prompt_that_is_too_long_is_a_wrong_answer(tmp_path: Path) -> None:
    with served(lambda body: trouble(400, "the prompt is longer than the model")) as (url, bodies):
        assert run(url, "--k", "10", "--out", str(tmp_path)) == 0
        assert run(url, "--k", "10", "--out", str(tmp_path)) == 0
    assert len(bodies) == 2 * COUNT
    [score] = results(tmp_path)["scores"]
    assert (score["refused"], score["failed"], score["all"]["right"]) == (2 * COUNT, 0, 0)


def test_a_silent_server_meets_the_deadline(capsys: pytest.CaptureFixture[str]) -> None:
    with served(lambda body: trouble(503, "busy", **{"Retry-After": "20"})) as (url, _):
        assert run(url, "--k", "10", "--deadline", "0.2", count=1) == 1
    assert "no answer within 0.2 s" in capsys.readouterr().err


def test_a_server_that_is_gone_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(lambda body: trouble(502, "gone")) as (url, bodies):
        assert run(url, "--k", "10", "--attempts", "1", "--concurrency", "2", count=100) == 1
    assert len(bodies) < 20
    assert "requests failed, the last with: HTTP 502: gone" in capsys.readouterr().err


def test_any_server_of_completions_can_be_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(perfect(SUITE, examples()), gateway=False) as (url, bodies):
        assert run(f"{url}/v1", "--k", "0", "--label", "vanilla", "--out", str(tmp_path)) == 0
        assert run(url) == 1
    assert "is no gateway of this project and calls no tools: give --k 0" in capsys.readouterr().err
    assert results(tmp_path)["label"] == "vanilla"
    assert results(tmp_path)["scores"][0]["all"]["share"] == 1
    assert all(body.keys() == {"model", "prompt", "max_tokens", "temperature"} for body in bodies)


def test_what_is_not_ready_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("http://127.0.0.1:9") == 1
    assert "cannot be reached" in capsys.readouterr().err
    with served(silent, ready=503) as (url, _):
        assert run(url) == 1
    assert "is not ready (HTTP 503)" in capsys.readouterr().err
    with served(silent, down=["QA", "MT"]) as (url, _):
        assert run(url) == 1
        assert "not ready: QA (it is out), MT (it is out)" in capsys.readouterr().err
        assert run(url, "--tools", "Calculator", count=1) == 0
        assert run(url, "--k", "0", count=1) == 0
        assert run(url, "--tools", "Abacus") == 1
    assert "no 'Abacus'" in capsys.readouterr().err


def test_a_key_that_is_refused_stops_the_run_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with served(lambda body: trouble(401, "the key is unknown")) as (url, _):
        assert run(url) == 1
    assert "refused a request: HTTP 401: the key is unknown" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suites", "lamb"], "there is no 'lamb'"),
        (["--suites", "squad"], "squad: needs its published files: name their folder with --data"),
        (["--suites", "svamp", "--data", "/nowhere"], "svamp: there is no svamp/SVAMP.json in /nowhere"),
        (["--suites", "svamp", "--file", "svamp"], "is given as SUITE=PATH"),
        (["--suites", "wikitext", "--data", "/nowhere"], "perplexity needs the model's weights"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    said = capsys.readouterr().err
    assert stopped.value.code == 1
    assert message in said
    assert said.count("\n") == 1


def test_options_out_of_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["--count", "0"], ["--k", "-1"], ["--deadline", "inf"], ["--limit", "0"]):
        with pytest.raises(SystemExit) as stopped:
            main(wrong)
        assert stopped.value.code == 2


def test_other_settings_do_not_mix_with_what_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--k", "10", "--out", str(tmp_path))
    with served(silent) as (url, bodies):
        assert run(url, *out) == 0
        assert run(url, *out, "--max-tokens", "7") == 1
        assert "other settings (max_tokens)" in capsys.readouterr().err
        (tmp_path / "mine.txt").write_text("kept")
        assert run(url, *out, "--max-tokens", "7", "--restart") == 0
    assert bodies[-1]["max_tokens"] == 7
    assert (tmp_path / "mine.txt").exists()


def test_an_out_that_is_a_file_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text("mine")
    with served(silent) as (url, _):
        assert run(url, "--out", str(tmp_path / "out"), count=1) == 1
    assert "cannot be made a folder" in capsys.readouterr().err


def test_a_sample_is_seeded_and_grows(tmp_path: Path) -> None:
    def asked(limit: int, seed: int) -> list[str]:
        with served(silent) as (url, bodies):
            assert run(url, "--k", "0", "--limit", str(limit), "--seed", str(seed), suites="dateset") == 0
        return sorted(body["prompt"] for body in bodies)

    few, more = asked(3, 0), asked(6, 0)
    assert len(few) == 3
    assert set(few) < set(more)


def test_torn_and_foreign_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers" / "k10-calls1" / "tools-Calculator.jsonl"
    out = ("--k", "10", "--out", str(tmp_path))
    with served(silent) as (url, bodies):
        assert run(url, *out) == 0
        whole = path.read_bytes()
        path.write_bytes(whole[:-20])
        assert run(url, *out) == 0
        assert len(bodies) == 2 * COUNT + 1
        assert len(read_records(path, Answer)) == 2 * COUNT
        path.write_bytes(b"{}\n" + whole)
        assert run(url, *out) == 1
        assert "tools-Calculator.jsonl:1: " in capsys.readouterr().err
        [first, *rest] = whole.splitlines(keepends=True)
        other = Answer.from_line(first).to_line().replace('"prompt":"', '"prompt":"Other: ').encode()
        path.write_bytes(b"".join([other, *rest]))
        assert run(url, *out) == 1
        assert "was asked with another prompt" in capsys.readouterr().err


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    count = 40

    def slow(body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.02)
        return silent(body)

    arguments = ["--suites", "tools-Calendar", "--count", str(count), "--k", "0", "--concurrency", "1"]
    with served(slow) as (url, bodies):
        arguments += ["--gateway", url, "--out", str(tmp_path)]
        process = forked.run("training_jobs.evaluate", arguments, {}, tmp_path / "log")
        wait_for(lambda: len(bodies) >= 10)
        process.kill()
        process.join(60)
        before = len(bodies)
        assert 10 <= before < 2 * count
        main(arguments)
        assert len(bodies) <= 2 * count + 1
    assert results(tmp_path)["scores"][0]["all"]["n"] == 2 * count
