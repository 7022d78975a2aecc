"""The stages with a model and a service, as processes: killed, with several workers, on several ranks, twice."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.training_jobs.runner import forked
from tests.training_jobs.runner.tiny_run import environment, write_corpus, write_model
from toolformer.calls_in_text import call_spans
from toolformer.tools import ToolRegistry
from training_jobs.merge.putting import plain, rendered
from training_jobs.records import KEPT, Annotated, CallSegment, Document, Merged

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

STAGES = {
    "annotate": ["corpus"],
    "execute": ["corpus", "annotate"],
    "filter": ["corpus", "annotate", "execute"],
    "merge": ["corpus", "annotate", "execute", "score", "filter"],
}
"""The commands, and the folders each must find."""
OUTPUTS = {
    "annotate": ["annotate/A.jsonl"],
    "execute": ["execute/A.jsonl"],
    "filter": ["score/A.jsonl", "filter/A.jsonl"],
    "merge": ["merge/with_calls.jsonl", "merge/without_calls.jsonl", "merge/documents.jsonl", "merge/summary.json"],
}


@dataclass
class Whole:
    """An undisturbed run, and how long its stages took in seconds."""

    root: Path
    environ: dict[str, str]
    seconds: dict[str, float]

    @property
    def run(self) -> Path:
        return self.root / "whole"

    @property
    def registry(self) -> ToolRegistry:
        return ToolRegistry.load(environ=self.environ)

    def arguments(self, stage: str, run: Path, *more: str) -> list[str]:
        """The command line of ``stage``."""
        model = ["--model", str(self.root / "model")] if stage in ("annotate", "filter") else []
        chunk = [] if stage == "merge" else ["--chunk", "3"]
        return ["--run", str(run), *model, *chunk, *more]

    def copy(self, name: str, stage: str) -> Path:
        """A run that has come as far as before ``stage``."""
        run = self.root / name
        for folder in STAGES[stage]:
            shutil.copytree(self.run / folder, run / folder)
        return run

    def same(self, run: Path, stage: str) -> bool:
        """Whether ``run`` has the undisturbed run's bytes."""
        return all((run / name).read_bytes() == (self.run / name).read_bytes() for name in OUTPUTS[stage])

    def do(self, module: str, arguments: list[str]) -> str:
        """Run a command to its good end; what it said."""
        log = self.root / "log"
        log.unlink(missing_ok=True)
        return forked.finish(forked.run(module, arguments, self.environ, log), log)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    root = tmp_path_factory.mktemp("runs")
    write_model(root / "model")
    write_corpus(root / "whole", 40)
    with environment(root) as environ:
        undisturbed = Whole(root, environ, {})
        undisturbed.do("training_jobs.merge", ["--help"])  # the process that is forked from is there now
        for stage in STAGES:
            began = time.monotonic()
            undisturbed.do(f"training_jobs.{stage}", undisturbed.arguments(stage, undisturbed.run))
            undisturbed.seconds[stage] = time.monotonic() - began
        yield undisturbed


def test_each_candidate_ends_with_an_output_or_an_error_and_a_verdict(whole: Whole) -> None:
    documents = [Document.from_line(line) for line in (whole.run / "corpus" / "A.jsonl").read_text().splitlines()]
    judged = [Annotated.from_line(line) for line in (whole.run / "filter" / "A.jsonl").read_text().splitlines()]
    assert [one.document for one in judged] == documents
    candidates = [candidate for one in judged for candidate in one.candidates]
    assert len({candidate.verdict for candidate in candidates}) >= 3
    for candidate in candidates:
        assert (candidate.output is None) != (candidate.error is None)
        assert (candidate.gain is None) == (candidate.output is None)
        assert (candidate.verdict == KEPT) == (candidate.gain is not None and candidate.gain >= 0)
    merged = [Merged.from_line(line) for line in (whole.run / "merge" / "with_calls.jsonl").read_text().splitlines()]
    texts = {document.id: document.text for document in documents}
    assert [plain(one.segments) for one in merged] == [texts[one.id] for one in merged]
    assert {one.id for one in merged} == {
        one.document.id for one in judged if any(candidate.verdict == KEPT for candidate in one.candidates)
    }


@pytest.mark.parametrize("stage", STAGES)
def test_killed_at_ten_random_moments_a_stage_continues_to_the_same_bytes(whole: Whole, stage: str) -> None:
    run = whole.copy(f"killed-{stage}", stage)
    arguments, log = whole.arguments(stage, run), whole.root / "killed.log"
    module = f"training_jobs.{stage}"
    forked.kill_at_random(
        lambda: forked.run(module, arguments, whole.environ, log), (0.0, 0.3 * whole.seconds[stage]), seed=len(stage)
    )
    whole.do(module, arguments)
    assert whole.same(run, stage)


def test_three_workers_write_the_bytes_of_one(whole: Whole) -> None:
    run = whole.copy("workers", "annotate")
    whole.do("training_jobs.annotate", whole.arguments("annotate", run, "--workers", "3"))
    assert whole.same(run, "annotate")


def test_two_ranks_write_the_bytes_of_one(whole: Whole) -> None:
    run = whole.copy("ranks", "filter")
    for rank in ("1", "0"):
        assert not (run / "filter" / "A.jsonl").exists()
        whole.do("training_jobs.filter", whole.arguments("filter", run, "--rank", rank, "--world-size", "2"))
    assert whole.same(run, "filter")


def test_other_thresholds_need_no_model(whole: Whole) -> None:
    run = whole.copy("thresholds", "merge")

    def kept(*options: str) -> int:
        whole.do("training_jobs.filter", ["--run", str(run), *options])
        return (run / "filter" / "A.jsonl").read_text().count('"verdict":"kept"')

    gains = sorted(
        candidate.gain
        for line in (run / "score" / "A.jsonl").read_text().splitlines()
        for candidate in Annotated.from_line(line).candidates
        if candidate.gain is not None
    )
    assert kept("--tau", "-100") == len(gains)
    assert kept("--tau", "A=0.01") == sum(gain >= 0.01 for gain in gains)
    # tau_f + lambda * cost: the tool costs 3.
    assert kept("--tau", "0.01", "--cost-weight", "0.002") == sum(gain >= 0.01 + 0.002 * 3 for gain in gains)
    assert kept("--tau", "0.01") > kept("--tau", "0.01", "--cost-weight", "0.002")
    log = whole.root / "z.log"
    wrong = forked.run("training_jobs.filter", ["--run", run, "--tau", "Z=1"], whole.environ, log)
    assert "there is no tool 'Z'; the tools are: A" in forked.finish(wrong, log, status=1)


def test_one_command_makes_the_same_and_a_second_round_adds_calls_to_it(whole: Whole) -> None:
    texts = whole.root / "texts.jsonl"
    lines = [json.loads(line) for line in (whole.run / "corpus" / "A.jsonl").read_text().splitlines()]
    texts.write_text("".join(json.dumps({key: line[key] for key in ("id", "text", "date")}) + "\n" for line in lines))
    run, model = whole.root / "one-command", str(whole.root / "model")
    command = [str(texts), "--run", str(run), "--model", model, "--chunk", "3", "--unchecked"]
    said = whole.do("training_jobs.pipeline", command)
    assert "texts with such a call, by tool" in said
    # The source's name is part of a document; calls and gains are the same.
    assert (run / "merge" / "with_calls.jsonl").read_bytes() == (whole.run / "merge" / "with_calls.jsonl").read_bytes()
    assert "are done already" in whole.do("training_jobs.pipeline", command)
    given, chosen = whole.root / "given-corpus", ["--corpus", str(whole.run / "corpus")]
    whole.do("training_jobs.pipeline", [*chosen, "--run", str(given), *command[3:]])
    assert (given / "merge/with_calls.jsonl").read_bytes() == (run / "merge/with_calls.jsonl").read_bytes()

    second = whole.root / "second"
    # A random model proposes by chance; with this seed some text gets a second call behind its first.
    more = ["--round", "2", "--earlier", str(run), "--run", str(second), "--model", model, "--seed", "2"]
    whole.do("training_jobs.pipeline", more)
    before = _merged(run)
    after = _merged(second)
    assert after.keys() == before.keys()
    documents = {one.id: one for one in _documents(second)}
    grown = chained = 0
    for id_, text in after.items():
        assert plain(text.segments) == plain(before[id_].segments) == documents[id_].text
        earlier = [segment for segment in before[id_].segments if isinstance(segment, CallSegment)]
        calls = [segment for segment in text.segments if isinstance(segment, CallSegment)]
        kept = iter(calls)
        assert all(any(call.input == one.input for one in kept) for call in earlier)  # in their order
        grown += len(calls) > len(earlier)
        chained += len(calls) > len(earlier) and calls[-1] not in earlier
    assert grown > 0
    assert chained > 0
    for line in (second / "annotate" / "A.jsonl").read_text().splitlines():
        annotated = Annotated.from_line(line)
        assert rendered([annotated.document.text], whole.registry).count(" [A(") >= 1
        spans = list(call_spans(annotated.document.text, whole.registry))
        assert spans
        for candidate in annotated.candidates:
            assert not any(span.start < candidate.offset < span.stop for span in spans)


def test_one_command_has_annotations_own_options_and_holds_texts_out(whole: Whole) -> None:
    texts, run, model = whole.root / "few.jsonl", whole.root / "few", str(whole.root / "model")
    lines = (whole.run / "corpus" / "A.jsonl").read_text().splitlines(keepends=True)[:16]
    texts.write_text("".join(lines))
    command = [str(texts), "--run", str(run), "--model", model, "--chunk", "3", "--unchecked"]
    whole.do("training_jobs.pipeline", [*command, "--begin-of-text", "--hold-out", "4"])
    held_out, selected = (
        {Document.from_line(line).id for line in (run / "corpus" / name).read_text().splitlines()}
        for name in ("held_out.jsonl", "A.jsonl")
    )
    assert len(held_out) == 4
    assert held_out | selected == {Document.from_line(line).id for line in lines}
    assert not held_out & selected

    proposed = []
    for options in ((), ("--begin-of-text",)):
        alone = whole.root / f"alone{len(options)}"
        shutil.copytree(run / "corpus", alone / "corpus")
        whole.do("training_jobs.annotate", whole.arguments("annotate", alone, *options))
        proposed.append((alone / "annotate" / "A.jsonl").read_bytes())
    assert proposed[1] == (run / "annotate" / "A.jsonl").read_bytes() != proposed[0]


def _merged(run: Path) -> dict[str, Merged]:
    lines = (run / "merge" / "with_calls.jsonl").read_text().splitlines()
    return {one.id: one for one in map(Merged.from_line, lines)}


def _documents(run: Path) -> list[Document]:
    return [Document.from_line(line) for line in (run / "merge" / "documents.jsonl").read_text().splitlines()]


def test_what_is_wrong_is_one_line(whole: Whole) -> None:
    def said(module: str, *arguments: str) -> str:
        log = whole.root / f"wrong-{os.urandom(4).hex()}"
        [line] = forked.finish(forked.run(module, arguments, whole.environ, log), log, status=1).splitlines()
        return line

    run = str(whole.root / "nothing")
    assert "holds no checkpoint (config.json)" in said(
        "training_jobs.pipeline", "x.jsonl", "--run", run, "--model", run
    )
    cold = said(
        "training_jobs.pipeline", "x.jsonl", "--run", run, "--model", str(whole.root / "model"), "--temperature", "0"
    )
    assert "--temperature must be more than 0 and finite, not 0" in cold
    later = ["--round", "2", "--earlier", run, "--hold-out", "9", "--run", run]
    assert "neither FILES nor --corpus nor --hold-out" in said(
        "training_jobs.pipeline", *later, "--model", str(whole.root / "model")
    )
    for wrong, why in (
        (["--corpus", run], "has no file <Tool>.jsonl of these tools"),
        (["x.jsonl", "--corpus", run], "takes FILES or --corpus"),
        (["--corpus", run, "--hold-out", "4"], "--hold-out draws from FILES"),
    ):
        assert why in said("training_jobs.pipeline", *wrong, "--run", run, "--model", str(whole.root / "model"))
    assert "corpus/A.jsonl is not there: run the stage that writes corpus first" in said(
        "training_jobs.annotate", "--run", run, "--model", str(whole.root / "model")
    )
    assert "annotate/A.jsonl is not there" in said("training_jobs.execute", "--run", run)
    assert "--restart makes the losses again and needs --model" in said(
        "training_jobs.filter", "--run", str(whole.run), "--restart"
    )
    assert "was made from other input or settings (seed): give --restart" in said(
        "training_jobs.annotate", *whole.arguments("annotate", whole.run, "--seed", "7")
    )
