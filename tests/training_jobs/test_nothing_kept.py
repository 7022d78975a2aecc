"""A stage that keeps nothing ends with status 3 and says why, with examples, and what to try."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.base import ToolFailure
from tests.training_jobs.finetune.small_run import RECIPE, options, texts, write_inputs
from tests.training_jobs.merge import filtered
from tests.training_jobs.runner.tiny_run import write_corpus, write_model, write_tools
from tests.training_jobs.servers import serve, service_of
from training_jobs import pipeline
from training_jobs.annotate import __main__ as annotate
from training_jobs.errors import NothingKept
from training_jobs.execute import __main__ as execute
from training_jobs.filter import __main__ as judge
from training_jobs.finetune import __main__ as finetune
from training_jobs.finetune.recipe import FinetuneRecipe
from training_jobs.finetune.training_texts import examples_of
from training_jobs.merge import __main__ as merge
from training_jobs.records import Annotated, Candidate, Document, Merged

Main = Callable[[Sequence[str]], None]
Said = Callable[..., str]


@pytest.fixture(autouse=True)
def _one_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_TOOLS", str(write_tools(tmp_path / "tools.toml")))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    """Run a command to status 3; its message, without the progress before it."""

    def run(main: Main, *arguments: object) -> str:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        message = capsys.readouterr().err
        assert ended.value.code == 3, message
        return message[message.index("python -m") :]

    return run


@pytest.fixture
def _silent_service(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    nobody = ToolFailure("no_answer", "nobody knows")
    app = service_of("A", lambda asked: "known" if asked == "known" else nobody)
    with serve(app) as url, monkeypatch.context() as patched:
        patched.setenv("TOOLFORMER_TOOL_A_URL", url)
        yield


def _write(path: Path, calls: Sequence[str], **more: Any) -> None:
    path.parent.mkdir(parents=True)
    candidates = [Candidate(4, 4, 0.5, input_, **more) for input_ in calls]
    records = (Annotated(Document(f"d{n}", f"One {n}\x1b is."), "A", (one,)) for n, one in enumerate(candidates))
    path.write_text("".join(record.to_line() for record in records))


def test_annotate_shows_what_the_model_wrote(tmp_path: Path, said: Said) -> None:
    model = write_model(tmp_path / "model", tool="1")
    write_corpus(tmp_path / "run", 6)
    message = said(annotate.main, "--run", tmp_path / "run", "--model", model)
    first, *examples, remedy = message.splitlines()
    assert "annotate: annotate A: nothing was kept; " in first
    assert "of 6 texts: malformed, such as" in first
    assert len(examples) == 3
    assert all(" in: " in example for example in examples)
    assert all(example.startswith("  [") for example in examples)
    assert remedy.startswith("  try: another base model")
    assert said(annotate.main, "--run", tmp_path / "run", "--model", model).endswith(message), "also when it goes on"


def test_annotate_without_a_likely_place_or_a_text(tmp_path: Path, said: Said) -> None:
    model = write_model(tmp_path / "model")
    (tmp_path / "strict.toml").write_text("[A]\nsampling_threshold = 0.999999\n")
    write_corpus(tmp_path / "run", 5)
    with _tools(tmp_path / "tools.toml", tmp_path / "strict.toml"):
        message = said(annotate.main, "--run", tmp_path / "run", "--model", model)
    assert "5 of 5 texts: no place where a call is likelier" in message
    assert "try: a smaller sampling_threshold" in message
    write_corpus(tmp_path / "empty", 0)
    message = said(annotate.main, "--run", tmp_path / "empty", "--model", model)
    assert message.endswith(
        "annotate A: nothing was kept, for there were no texts; try: more texts; counts.json beside the corpus says "
        "why texts were left out\n"
    )


@contextlib.contextmanager
def _tools(*files: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOOLFORMER_TOOLS", ":".join(map(str, files)))
        yield


@pytest.mark.usefixtures("_silent_service")
def test_execute_names_the_services_error(tmp_path: Path, said: Said) -> None:
    _write(tmp_path / "annotate" / "A.jsonl", ["1", "2", "3", "4"])
    message = said(execute.main, "--run", tmp_path)
    assert "execute A: nothing was kept; 4 of 4 calls: no_answer, such as\n  One [A(1)]0 is.\n  One [A(2)]1" in message
    assert "toolformer call TOOL INPUT" in message


@pytest.mark.usefixtures("_silent_service")
def test_only_the_whole_of_all_ranks_counts(tmp_path: Path, said: Said) -> None:
    shares = [["--chunk", "1", "--world-size", "2", "--rank", str(rank)] for rank in (0, 1)]
    for name, calls in {"some": ["1", "known"], "none": ["1", "2"]}.items():
        _write(tmp_path / name / "annotate" / "A.jsonl", calls)
        execute.main(["--run", str(tmp_path / name), *shares[0]])
    execute.main(["--run", str(tmp_path / "some"), *shares[1]])
    for share in (shares[1], *shares):
        assert "2 of 2 calls: no_answer" in said(execute.main, "--run", tmp_path / "none", *share)


@pytest.mark.usefixtures("_silent_service")
def test_one_tool_of_several_is_a_remark(tmp_path: Path, said: Said, capsys: pytest.CaptureFixture[str]) -> None:
    other = (tmp_path / "tools.toml").read_text().split("[A]")[1].replace("A(", "B(").replace("[A", "[B")
    (tmp_path / "b.toml").write_text(f"[B]{other}")
    for tool, call in {"A": "known", "B": "1"}.items():
        _write(tmp_path / tool / "annotate" / "A.jsonl", [call])
        target = tmp_path / "run" / "annotate" / f"{tool}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        written = (tmp_path / tool / "annotate" / "A.jsonl").read_text()
        target.write_text(written.replace('"tool":"A"', f'"tool":"{tool}"'))
    with _tools(tmp_path / "tools.toml", tmp_path / "b.toml"), pytest.MonkeyPatch.context() as patched:
        patched.setenv("TOOLFORMER_TOOL_B_URL", os.environ["TOOLFORMER_TOOL_A_URL"])
        execute.main(["--run", str(tmp_path / "run")])
        assert "execute B: nothing was kept; 1 of 1 calls: " in capsys.readouterr().err
        assert "execute B" in said(execute.main, "--run", tmp_path / "run", "--tools", "B")


def test_filter_merge_and_finetune_show_the_best_gains(tmp_path: Path, said: Said) -> None:
    losses = {"output": "2 1", "loss_empty": 3.0, "loss_call": 3.5}
    path = tmp_path / "run" / "score" / "A.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("w") as file:
        for number in range(5):
            call = Candidate(4, 4, 0.5, f"{number}", loss_result=3.5 - number / 10, **losses)  # type: ignore[arg-type]
            file.write(Annotated(Document(f"d{number}", "One 1 is."), "A", (call,)).to_line())
    why = "nothing was kept; 5 of 5 calls: gain below threshold, such as\n  -0.100 nats: One [A(4) -> 2 1]1 is.\n"
    arguments = ["--run", tmp_path / "run"]
    message = said(judge.main, *arguments, "--tau", "0.5")
    assert f"filter A: {why}" in message
    assert "try: --tau below the best gain" in message
    assert f"merge A: {why}" in said(merge.main, *arguments)
    assert (tmp_path / "run" / "merge" / "report.html").is_file(), "to look at what was dropped"
    inputs = write_inputs(tmp_path)
    stars = tmp_path / "run" / "merge" / "with_calls.jsonl"
    message = said(finetune.main, *options((inputs[0], stars, inputs[2]), tmp_path / "out", RECIPE))
    assert f"with_calls.jsonl has no texts; filter A: {why}" in message
    judge.main([*map(str, arguments), "--tau", "-1"])
    message = said(finetune.main, *options((inputs[0], stars, inputs[2]), tmp_path / "out", RECIPE))
    assert message.endswith("with_calls.jsonl has no texts; merge again\n")


def test_nothing_came_in(tmp_path: Path, said: Said) -> None:
    filtered.write(tmp_path / "filter", "A", {"d": ("One is 1.", [])})
    assert said(merge.main, "--run", tmp_path).endswith(
        "merge A: nothing was kept, for there were no calls; try: run the stage before this one again: it says why it "
        "kept nothing\n"
    )


def test_texts_of_which_none_has_a_call_train_nothing() -> None:
    bare = [Merged(one.id, ("One is 1.",), ()) for one in texts(4)]
    with pytest.raises(NothingKept, match=r"none of the 4 texts has a call, such as 't000', 't001', 't002'"):
        examples_of(bare, FinetuneRecipe())


@pytest.mark.usefixtures("_silent_service")
def test_a_whole_run_stops_there(tmp_path: Path, said: Said) -> None:
    text = tmp_path / "texts.jsonl"
    text.write_text('{"id": "d", "text": "One is 1."}\n')
    model = write_model(tmp_path / "model", tool="1")
    command = [pipeline.main, text, "--run", tmp_path / "run", "--model", model]
    message = said(*command)
    assert f"{model} does not follow the prompt's form\nform A: nothing was kept; 1 of 1 texts: malformed" in message
    assert not (tmp_path / "run" / "annotate").exists()
    message = said(*command, "--unchecked")
    assert "annotate A: nothing was kept; 1 of 1 texts: malformed" in message
    assert not (tmp_path / "run" / "execute").exists()
