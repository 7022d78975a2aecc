"""A file of one's own prompts: what is read, what is right, what the table says, and what is refused."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.training_jobs.evaluate.stand_in import served
from training_jobs.evaluate import readers
from training_jobs.evaluate.__main__ import main
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.readers.question_file import read_question_file
from training_jobs.evaluate.scoring import PATTERNS

VISITORS = Path(readers.__file__).parents[1] / "visitors.jsonl"
SUM = {"id": "a", "kind": "sums", "prompt": "12 + 35 =", "tool": "Calculator", "accept": ["47"]}
PLAIN = {"id": "b", "kind": "no tool", "prompt": "Roses are red,", "tool": "none"}


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_visitors_prompts_are_read() -> None:
    examples = read_question_file([VISITORS]).examples
    kinds = ("arithmetic", "dates", "facts", "questions", "translations")
    assert Counter(example.split for example in examples) == dict.fromkeys(kinds, 60) | {"no tool": 20}
    assert len({example.text for example in examples}) == 320


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("{today:%A}", " Friday, as it seems"),
        ("{today+1:%B} {today+1:%-d}", "March 1"),
        ("{today-28:%B}", "january"),
        ("{year}", "in 2031."),
        ("{year-1990}", "41 years"),
        ("{year+5}", "2036"),
    ],
)
def test_placeholders_follow_the_date(tmp_path: Path, pattern: str, text: str) -> None:
    row = SUM | {"accept": [pattern], "date": "2031-02-28"}
    [example] = read_question_file([written(tmp_path, row)]).examples
    assert example.date == dt.date(2031, 2, 28)
    assert PATTERNS.right(text, example.answers)
    assert not PATTERNS.right(" 1999, on a Monday in May", example.answers)


def test_a_pattern_is_not_found_inside_a_longer_word_or_number() -> None:
    assert PATTERNS.right("It is 47.", ["47"])
    assert PATTERNS.right("$47 or so", ["47"])
    for text in ("470", "147", "4.47", "47.5", "1,47", "fort47"):
        assert not PATTERNS.right(text, ["47"]), text


def test_the_table_has_kinds_with_and_without_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def reply(body: dict[str, Any]) -> dict[str, Any]:
        if body["prompt"] == SUM["prompt"] and body["tools"]:
            call = {"tool": "Calculator", "input": "12 + 35", "output": "47", "error": None}
            return {"text": " 47.", "tool_calls": [call], "finish_reason": "stop"}
        return {"text": "" if body["tools"] else " well", "tool_calls": [], "finish_reason": "length"}

    path = written(tmp_path, SUM, PLAIN, PLAIN | {"id": "c", "prompt": "Dear Sir,"})
    with served(reply) as (url, bodies):
        main(["--gateway", url, "--file", str(path), "--out", str(tmp_path / "out")])
    assert len(bodies) == 6
    scores = {score["k"]: score for score in json.loads((tmp_path / "out/results.json").read_text())["scores"]}
    assert {kind: share["right"] for kind, share in scores[10]["splits"].items()} == {"sums": 1, "no tool": 0}
    assert {kind: share["right"] for kind, share in scores[0]["splits"].items()} == {"sums": 0, "no tool": 2}
    conduct = scores[10]["conduct"]
    assert (conduct["sums"]["expected"]["right"], conduct["sums"]["cut_off"]) == (1, 0)
    assert (conduct["no tool"]["empty"], conduct["no tool"]["cut_off"]) == (2, 2)
    assert "Prompts of mine" in capsys.readouterr().out
    assert "Roses are red," in (tmp_path / "out/report.html").read_text()


def test_where_no_tool_fits_a_call_is_wrong(tmp_path: Path) -> None:
    call = {"tool": "Calendar", "input": "", "output": "Today is Friday.", "error": None}
    with served(lambda body: {"text": " violets", "tool_calls": [call] if body["tools"] else []}) as (url, _):
        main(["--gateway", url, "--file", str(written(tmp_path, PLAIN)), "--out", str(tmp_path / "out")])
    disabled, enabled = json.loads((tmp_path / "out/results.json").read_text())["scores"]
    assert (disabled["all"]["right"], enabled["all"]["right"]) == (1, 0)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (SUM | {"accept": ["("]}, "accept: '(' is not a regular expression"),
        (SUM | {"accept": []}, "answers: must hold at least one"),
        (SUM | {"answer": "47"}, "answer: is not a field; the fields are accept, date, id, kind, prompt, tool"),
        (SUM | {"date": "2031-02-30"}, "write it as YYYY-MM-DD"),
        (SUM | {"prompt": 12}, "prompt: must be str, not int"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SuiteError) as raised:
        read_question_file([written(tmp_path, row)])
    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [("nothing.jsonl", "there is no such file of prompts"), ("svamp=", "there is no such file of prompts")],
)
def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str], given: str, complaint: str) -> None:
    with pytest.raises(SystemExit):
        main(["--file", given])
    assert complaint in capsys.readouterr().err
