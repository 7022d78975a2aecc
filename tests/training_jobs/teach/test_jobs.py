"""The jobs behind ``toolformer teach``: texts around demonstrations, proposals, the form check, what is held out."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.training_jobs.runner.tiny_run import write_corpus, write_model, write_tools
from tests.training_jobs.teach.doubling import TABLE, doubling, tool
from toolformer.tools import Demonstration
from training_jobs.corpora.web.readers import read
from training_jobs.errors import NothingKept, StageError
from training_jobs.records import KEPT, Annotated, Candidate, Document
from training_jobs.run_folder import RunFolder
from training_jobs.teach import form, proposing, varying
from training_jobs.teach.holding_out import hold_out, is_held_out
from training_jobs.teach.trusting import trust
from training_jobs.teach.varying import Pieces, pieces_of, pools_of, varied, without_answers

Run = Callable[[Callable[[Sequence[str]], None], Sequence[object]], tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command: its status and what it wrote to standard error."""

    def ran(main: Callable[[Sequence[str]], None], arguments: Sequence[object]) -> tuple[int, str]:
        status = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
        return status, capsys.readouterr().err

    return ran


@pytest.fixture
def _double(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "tools.toml").write_text(TABLE)
    with doubling() as url:
        monkeypatch.setenv("TOOLFORMER_TOOLS", str(tmp_path / "tools.toml"))
        monkeypatch.setenv("TOOLFORMER_TOOL_DOUBLE_URL", url)
        yield


def test_a_demonstration_varies_in_what_the_input_takes_from_the_text_before_it() -> None:
    output = "The road is 12 km long, or [Double(12 km in miles)] 7.46 miles. 7.46 it is."
    plain = output.replace(" [Double(12 km in miles)]", "")
    pieces = pieces_of(Demonstration(input=plain, output=output), tool())
    assert pieces.inputs == ("12 km in miles",)
    marked = without_answers(pieces, ["7.46"])
    assert marked is not None
    assert marked.filled(["7.46"]) == (plain, [plain.index(" 7.46")])
    assert without_answers(pieces, ["7.4"]) is None, "the tool says something else than the demonstration"
    pools = pools_of([*pieces.inputs, "3 feet in metres"])
    draw, units = random.Random(0), set()
    for _ in range(50):
        other = varied(marked, pools, draw)
        if other is None:  # the same words again, or two made one
            continue
        [input_] = other.inputs
        found = re.fullmatch(r"(\d{1,3}) (km|feet) in miles", input_)
        assert found is not None, input_
        text, _ = other.filled(["5"])
        assert text == f"The road is {found[1]} {found[2]} long, or 5 miles. 5 it is."
        units.add(found[2])
    assert units == {"km", "feet"}
    assert varied(Pieces(("Nothing is asked for,", "."), ("12",)), pools, draw) is None


@pytest.mark.usefixtures("_double")
def test_texts_have_the_tools_own_answers(tmp_path: Path, run: Run) -> None:
    assert run(varying.main, ["--tool", "Double", "--out", tmp_path, "--documents", 40])[0] == 0
    texts = {one.document.id: one.document.text for one in read(tmp_path / varying.TEXTS_FILE)}
    assert len(set(texts.values())) == 40
    for line in (tmp_path / varying.CALLS_FILE).read_text().splitlines():
        record = json.loads(line)
        [call] = record["calls"]
        text = texts[record["id"]]
        assert int(call["answer"]) == 2 * int(call["input"])
        assert text[call["offset"] :].startswith(f" {call['answer']}.")
        assert call["input"] in text[: call["offset"]]


@pytest.mark.usefixtures("_double")
def test_demonstrations_that_cannot_vary_are_shown(tmp_path: Path, run: Run) -> None:
    text = 'demonstrations = [{ input = "Twice 12 is 25.", output = "Twice 12 is [Double(12)] 25." }]'
    (tmp_path / "tools.toml").write_text(re.sub(r"demonstrations = \[.*?\n\]", text, TABLE, flags=re.DOTALL))
    status, log = run(varying.main, ["--tool", "Double", "--out", tmp_path])
    assert status == 3
    assert "[Double(12)] 25. (the tool: ['24'])" in log
    assert "try: demonstrations in which the tool's own answer is right behind each call" in log


def _texts(path: Path) -> Path:
    documents = (Document("a", "Twice 4 is 8."), Document("b", "Nothing."))
    path.write_text("".join(document.to_line() for document in documents))
    return path


@pytest.mark.usefixtures("_double")
def test_calls_come_from_a_rule_or_a_file(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    texts, model = _texts(tmp_path / "texts.jsonl"), write_model(tmp_path / "model")
    (tmp_path / "numbers_rule.py").write_text(
        "import re\n"
        "def found(text):\n    return [(m.end(), m[1]) for m in re.finditer(r'Twice (\\d+) is', text)]\n"
        "def broken(text):\n    return [1]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    common = [texts, "--run", tmp_path / "run", "--model", model, "--tools", "Double"]
    assert run(proposing.main, [*common, "--rule", "numbers_rule:found"]) == (0, "")
    [line] = (tmp_path / "run" / "annotate" / "Double.jsonl").read_text().splitlines()
    [call] = Annotated.from_line(line).candidates
    assert (call.offset, call.input) == (10, "4")
    (tmp_path / "calls.jsonl").write_text('{"id": "a", "calls": [{"tool": "Double", "offset": 10, "input": "4"}]}\n')
    assert run(proposing.main, [*common, "--proposals", tmp_path / "calls.jsonl"]) == (0, "")
    assert (tmp_path / "run" / "annotate" / "Double.jsonl").read_text().splitlines() == [line]

    for rule, said in [("numbers_rule:none", "has no attribute 'none'"), ("nowhere:f", "No module named 'nowhere'"),
                       ("numbers_rule:broken", "of the text 'a'; it gives pairs of offset and input")]:  # fmt: skip
        status, log = run(proposing.main, [*common, "--rule", rule])
        assert (status, said in log) == (1, True), log
    for lines, status, said in [
        ('{"id": "a"}', 1, "calls.jsonl:1: calls: Field required"),
        ('{"id": "a", "calls": [{"tool": "Double", "offset": 99, "input": "4"}]}', 1, "the text has 13 characters"),
        ('{"id": "c", "calls": []}', 3, "nothing was proposed for 2 texts, such as\n  'Twice 4 is 8.'"),
    ]:
        (tmp_path / "calls.jsonl").write_text(lines)
        found = run(proposing.main, [*common, "--proposals", tmp_path / "calls.jsonl"])
        assert (found[0], said in found[1]) == (status, True), found[1]


def test_no_held_out_input_is_taught(tmp_path: Path) -> None:
    def record(number: int, output: str = "8") -> Annotated:
        call = Candidate(1, 5, 1.0, str(number % 40), output=output, verdict=KEPT)
        return Annotated(Document(f"d{number}", f"Twice 8. Then {number}."), "Double", (call,))

    folder = RunFolder(tmp_path)
    folder.target("filter", "Double").write_text("".join(record(number).to_line() for number in range(120)))
    taught, questions = hold_out(folder, "Double", 10)
    lines = (tmp_path / "taught" / "filter" / "Double.jsonl").read_text().splitlines()
    inputs = {call.input for line in lines for call in Annotated.from_line(line).candidates}
    apart = {str(number) for number in range(40) if is_held_out(record(number))}
    assert apart
    assert inputs == {str(number) for number in range(40)} - apart
    assert (len(lines), questions) == (taught, 10)
    asked = [json.loads(line) for line in (tmp_path / "held-out" / "Double.jsonl").read_text().splitlines()]
    assert {(one["prompt"], *one["accept"], one["tool"]) for one in asked} == {("Twice", "8", "Double")}
    folder.file("filter", "Double").write_text("".join(record(number, "9").to_line() for number in range(120)))
    with pytest.raises(NothingKept, match=r"held out, 0 of which go on with what the tool answered\n  try: more texts"):
        hold_out(folder, "Double", 10)


def test_calls_that_are_trusted_need_a_result_alone(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    calls = (Candidate(1, 5, 1.0, "4", output="8"), Candidate(2, 9, 1.0, "x", error="no_result"))
    records = [Annotated(Document(f"d{number}", "Twice 4 is 8."), "Double", calls) for number in range(9)]
    folder.target("execute", "Double").write_text("".join(record.to_line() for record in records))
    assert trust(folder, "Double") == 9
    kept = [Annotated.from_line(line) for line in folder.file("filter", "Double").read_text().splitlines()]
    assert {(call.input, call.verdict) for record in kept for call in record.candidates} == {("4", KEPT)}
    assert len({record.candidates[0].gain for record in kept}) == 9, "which of two calls at a place stays is drawn"


@pytest.fixture
def _one_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_TOOLS", str(write_tools(tmp_path / "tools.toml")))


@pytest.mark.usefixtures("_one_tool")
def test_a_model_that_does_not_follow_the_form_is_named_at_once(tmp_path: Path, run: Run) -> None:
    write_corpus(tmp_path / "run", 12)
    writes_other_calls = write_model(tmp_path / "model", tool="1")
    status, log = run(form.main, ["--run", tmp_path / "run", "--model", writes_other_calls])
    assert status == 3
    first, _, reason, *examples, remedy, otherwise = log.splitlines()
    assert re.fullmatch(r"form: 0 of \d+ samples in 12 texts are calls of A", first)
    assert "of 12 texts: malformed, such as" in reason
    assert len(examples) == 3
    assert remedy.startswith("  try: another base model")
    assert "--proposals FILE or --rule MODULE:FUNCTION" in otherwise


@pytest.mark.usefixtures("_one_tool")
def test_a_model_that_follows_the_form_but_copies_nothing(tmp_path: Path, run: Run) -> None:
    write_corpus(tmp_path / "run", 12)
    status, log = run(form.main, ["--run", tmp_path / "run", "--model", write_model(tmp_path / "model")])
    assert status == 3
    assert re.match(r"form: [1-9]\d* of \d+ samples", log)
    assert "it does not copy, so no result can help it\n  try: a base model that was trained longer" in log


def test_a_rule_that_is_no_function() -> None:
    with pytest.raises(StageError, match="name a function of a module in this folder"):
        proposing.from_rule("", "Double")
