"""Precision by the generator's truth: the right place, the right answer, before and after the filter."""

import json
from pathlib import Path

import pytest

from training_jobs.corpus.__main__ import main
from training_jobs.corpus.precision import TrueCall, is_right, measure
from training_jobs.records import KEPT, Annotated, Candidate, Document

TEXT = "Each of the 24 boxes holds 17 books, so together they hold 408 books."
AT = TEXT.index(" 408")
TRUE = TrueCall(AT, "408")


def candidate(offset: int, output: str | None = "408", verdict: str | None = None) -> Candidate:
    error = "no_result" if output is None else None
    return Candidate(1, offset, 0.5, "24 * 17", output=output, error=error, verdict=verdict)


@pytest.mark.parametrize(
    ("offset", "output", "right"),
    [
        (AT, "408", True),
        (AT + 1, "408", True),
        (AT + 2, "408", False),
        (TEXT.index(" they hold"), "408", True),
        (TEXT.index("together they"), "408", False),
        (AT, "4080", False),
        (AT, "40", False),
        (AT, "It is 408, they say", True),
        (AT, None, False),
    ],
)
def test_right_is_the_place_and_the_answer(offset: int, output: str | None, right: bool) -> None:
    assert is_right(TEXT, candidate(offset, output), TRUE) is right


def test_strict_places() -> None:
    early = candidate(TEXT.index(" hold 408"))
    assert is_right(TEXT, early, TRUE)
    assert not is_right(TEXT, early, TRUE, words_before=0)


def record(*candidates: Candidate, name: str = "a", tool: str = "Calculator") -> Annotated:
    return Annotated(Document(name, TEXT), tool, candidates)


def test_candidates_and_places_are_counted_before_and_after_the_filter() -> None:
    judged = [
        record(
            candidate(AT, verdict=KEPT), candidate(AT + 1, verdict=KEPT), candidate(AT, "7", "gain below threshold")
        ),
        record(candidate(3, verdict=KEPT), name="b"),
        record(candidate(AT), tool="QA"),
    ]
    truth = {("a", "Calculator"): [TRUE, TrueCall(3, "24")], ("b", "Calculator"): [TRUE]}
    found = measure(judged, truth)
    calculator = found["Calculator"]
    assert (calculator.candidates, calculator.right, calculator.before) == (4, 2, 0.5)
    assert (calculator.kept, calculator.kept_right, calculator.after) == (3, 2, 2 / 3)
    assert (calculator.places, calculator.found, calculator.found_kept) == (3, 1, 1)
    assert (found["QA"].before, found["QA"].after) == (0, None)


def test_the_command_reads_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    truth = {"id": "a", "calls": [{"tool": "Calculator", "offset": AT, "input": "24 * 17", "answer": "408"}]}
    (tmp_path / "truth.jsonl").write_text(json.dumps(truth) + "\n")
    (tmp_path / "f.jsonl").write_text(record(candidate(AT, verdict=KEPT)).to_line())
    options = ["precision", "--truth", str(tmp_path / "truth.jsonl"), str(tmp_path / "f.jsonl")]
    main([*options, "--json", str(tmp_path / "p.json")])
    assert json.loads((tmp_path / "p.json").read_text())["Calculator"]["precision_after"] == 1
    assert "Calculator" in capsys.readouterr().out
    (tmp_path / "truth.jsonl").write_text('{"id": "a"}\n')
    with pytest.raises(SystemExit):
        main(options)
    assert "truth.jsonl:1: is no line of a truth" in capsys.readouterr().err
    (tmp_path / "truth.jsonl").write_text("")
    (tmp_path / "f.jsonl").write_text("{}\n")
    with pytest.raises(SystemExit):
        main(options)
    assert "f.jsonl:1: " in capsys.readouterr().err
