"""Steps one after the other: what is done is not done again, and what cannot be gone on with is refused by name."""

import dataclasses
import fcntl
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.console import CommandError
from cli.reproduce import counts
from cli.reproduce.marks import Marks
from cli.reproduce.plan import Step
from cli.reproduce.running import Runner, StepError


def step(run: Path, name: str, text: str = "x", *more: str, **fields: Any) -> Step:
    """A step that adds a line to the file that is called like it."""
    product = run / name
    return Step(name, f"make {name}", "tests.cli.reproduce.fake_step", (product, text, *more), (product,), **fields)


def do(run: Path, *steps: Step, until: str | None = None) -> str:
    """Do the steps; what was said."""
    said = io.StringIO()
    console = Console(file=said, width=200)
    Runner(run, steps, {"setting": "tiny"}, console, os.environ).do(until)
    return said.getvalue()


def manifest(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return content


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    steps = step(tmp_path, "a", counts=lambda: {"texts": 7}), step(tmp_path, "b"), step(tmp_path, "c")
    first = do(tmp_path, *steps, until="b")
    assert [line.split(":")[0] for line in first.splitlines() if line[0] == "["] == ["[1/2] a"] * 2 + ["[2/2] b"] * 2
    assert "    says x\n" in first
    assert not manifest(tmp_path)["complete"]
    again = do(tmp_path, *steps)
    assert again.count("done already, it took 0:00:0") == 2
    assert [(tmp_path / name).read_text() for name in "abc"] == ["x\n"] * 3
    assert "says x\n" in (tmp_path / "logs" / "c.log").read_text()

    content = manifest(tmp_path)
    assert content["complete"]
    assert content["setting"] == "tiny"
    assert list(content["steps"]) == ["a", "b", "c"]
    made = content["steps"]["a"]
    assert made["counts"] == {"texts": 7}
    assert made["products"] == {"a": {"bytes": 2, "sha256": hashlib.sha256(b"x\n").hexdigest()}}
    assert made["arguments"] == ["a", "x"]  # not where the run happens to stand
    assert content["seconds"] == pytest.approx(sum(one["seconds"] for one in content["steps"].values()))
    assert {"python", "torch", "transformers", "commit", "dirty"} <= content["versions"].keys()
    assert content["processor"]


def test_a_product_that_was_lost_is_made_again(tmp_path: Path) -> None:
    steps = step(tmp_path, "a"), step(tmp_path, "b")
    do(tmp_path, *steps)
    (tmp_path / "a").unlink()
    assert "[2/2] b: done already" in do(tmp_path, *steps)
    assert (tmp_path / "a").read_text() == "x\n"


def test_a_failing_step_is_reported_with_the_end_of_its_log_and_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(StepError) as failed:
        do(tmp_path, step(tmp_path, "a"), step(tmp_path, "b", "no luck", "3"), step(tmp_path, "c"))
    assert failed.value.status == 3
    message = str(failed.value)
    assert message.startswith("step b ended with status 3; the end of ")
    assert message.endswith("says no luck")
    assert not (tmp_path / "c").exists()
    assert Marks(tmp_path).state(step(tmp_path, "b")) == "begun"
    assert list(manifest(tmp_path)["steps"]) == ["a"]
    with pytest.raises(StepError):  # the same command goes on, and the first step is not done again
        do(tmp_path, step(tmp_path, "a"), step(tmp_path, "b", "no luck", "3"))
    assert (tmp_path / "a").read_text() == "x\n"


def test_a_step_that_writes_nothing_is_reported(tmp_path: Path) -> None:
    odd = dataclasses.replace(step(tmp_path, "a"), products=(tmp_path / "b",))
    with pytest.raises(CommandError, match=r"step a ended well but did not write .*b; its log: .*a\.log"):
        do(tmp_path, odd)


def test_other_settings_are_refused_naming_the_option(tmp_path: Path) -> None:
    do(tmp_path, step(tmp_path, "a", "--documents", how=()))
    with pytest.raises(CommandError, match=r"step a was done with --documents, not --texts; give the same settings"):
        do(tmp_path, step(tmp_path, "a", "--texts"))
    assert "done already" in do(tmp_path, step(tmp_path, "a", "--documents", how=("--workers", "9")))


def test_a_step_that_failed_can_be_begun_anew_with_another_file(tmp_path: Path) -> None:
    outside = tmp_path / "held-out.jsonl"
    outside.write_text("one")
    with pytest.raises(StepError):
        do(tmp_path / "run", step(tmp_path / "run", "a", "no luck", "3", inputs=(outside,)))
    outside.write_text("two")
    mended = step(tmp_path / "run", "a", inputs=(outside,))
    with pytest.raises(CommandError, match=r"step a was begun with .* or remove .*a\.json to begin the step anew"):
        do(tmp_path / "run", mended)
    (tmp_path / "run" / "steps" / "a.json").unlink()
    do(tmp_path / "run", mended)
    assert Marks(tmp_path / "run").state(mended) == "done"


def test_another_file_from_outside_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "model.safetensors"
    outside.write_text("one")
    do(tmp_path / "run", step(tmp_path / "run", "a", inputs=(outside,)))
    outside.write_text("two")
    with pytest.raises(CommandError, match=r"done with another model\.safetensors; give that one again"):
        do(tmp_path / "run", step(tmp_path / "run", "a", inputs=(outside,)))


def test_a_summary_is_made_anew_with_what_it_shows_and_only_then(tmp_path: Path) -> None:
    steps = step(tmp_path, "a"), step(tmp_path, "table", summary=True)
    do(tmp_path, *steps)
    assert "table: done already" in do(tmp_path, *steps)
    (tmp_path / "a").unlink()
    do(tmp_path, *steps)
    assert (tmp_path / "table").read_text() == "x\nx\n"
    do(tmp_path, steps[0], step(tmp_path, "table", "two models", summary=True))
    assert (tmp_path / "table").read_text() == "x\nx\ntwo models\n"


def test_a_run_is_moved(tmp_path: Path) -> None:
    do(tmp_path / "one", step(tmp_path / "one", "a"))
    (tmp_path / "one").rename(tmp_path / "two")
    assert "done already" in do(tmp_path / "two", step(tmp_path / "two", "a"))


def test_seconds_of_an_attempt_that_was_killed_count(tmp_path: Path) -> None:
    marks, one = Marks(tmp_path), step(tmp_path, "a")
    marks.begin(one)
    began = json.loads((tmp_path / "steps" / "a.json").read_text())["began"]
    os.utime(marks.log(one), (began + 100, began + 100))  # its last line; then the kill
    assert marks.seconds(one) == pytest.approx(100)
    do(tmp_path, one)
    assert 100 <= manifest(tmp_path)["steps"]["a"]["seconds"] < 200


def test_two_processes_at_one_run_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CommandError, match="another process is at it"):
            do(tmp_path, step(tmp_path, "a"))


def test_the_best_checkpoint_of_a_finetuning_is_never_the_base_model(tmp_path: Path) -> None:
    (tmp_path / "with_calls.jsonl").write_text("{}\n" * 3)
    curve = [
        {"step": 0, "eval_perplexity": 3.1}, {"step": 1, "loss": 2.0}, {"step": 2, "eval_perplexity": 3.4},
        {"step": 4, "eval_perplexity": 3.2}, {"step": 5, "loss": 1.0}, {"step": 6, "eval_perplexity": 3.3},
    ]  # fmt: skip
    (tmp_path / "curve.jsonl").write_text("".join(json.dumps(line) + "\n" for line in curve))
    assert counts.finetuning([tmp_path / "with_calls.jsonl"] * 2, tmp_path) == {
        "examples": 6, "steps": 6, "perplexity_before": 3.1, "best_step": 4, "best_perplexity": 3.2,
    }  # fmt: skip
