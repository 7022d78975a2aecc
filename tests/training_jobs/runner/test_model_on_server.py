"""Stages whose model is on a server."""

import shutil
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.vocabularies import small_tokenizer
from tests.training_jobs.calling_models import CALLS, calling_model
from tests.training_jobs.runner.tiny_run import write_corpus, write_model
from tests.training_jobs.vllm_server import vllm_server
from training_jobs.annotate import AnnotateSettings
from training_jobs.annotate.job import annotate_tools
from training_jobs.errors import StageError
from training_jobs.filter import ScoreSettings
from training_jobs.filter.job import score_tools
from training_jobs.model_choice import ModelChoice
from training_jobs.records import Annotated
from training_jobs.run_folder import RunFolder
from training_jobs.runner.running import Running

QUIET = Running(console=Console(quiet=True))


@pytest.mark.slow
def test_a_server_proposes_and_scores_as_the_model_at_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("language_model.bulk.server.time.sleep", lambda seconds: None)
    write_model(tmp_path / "model")
    write_corpus(tmp_path / "run", 6)
    folder = RunFolder(tmp_path / "run")
    (tmp_path / "told").mkdir()
    for name in ("config.json", "tokenizer.json"):  # no weights
        shutil.copyfile(tmp_path / "model" / name, tmp_path / "told" / name)
    with vllm_server(calling_model(small_tokenizer(), 0), small_tokenizer()) as state:
        there = ModelChoice(tmp_path / "told", server=state.url, served_as="m", server_key="secret")
        assert annotate_tools(folder, [CALLS], QUIET, there, AnnotateSettings())
        annotated = folder.file("annotate", "A").read_text(encoding="utf-8")
        assert '"input":' in annotated
        answered = annotated.replace('"output":null', '"output":"1 is"')
        folder.target("execute", "A").write_text(answered, encoding="utf-8")
        assert score_tools(folder, [CALLS], QUIET, there, ScoreSettings())
        found = folder.file("score", "A").read_text(encoding="utf-8")
    folder.file("score", "A").with_name("A.jsonl.done.json").unlink()
    assert score_tools(folder, [CALLS], QUIET, ModelChoice(tmp_path / "model"), ScoreSettings())
    here = folder.file("score", "A").read_text(encoding="utf-8")
    for a, b in zip(
        map(Annotated.from_line, found.splitlines()), map(Annotated.from_line, here.splitlines()), strict=True
    ):
        assert [one.gain for one in a.candidates] == pytest.approx([one.gain for one in b.candidates], abs=1e-4)
    with pytest.raises(StageError, match=r"/v1/completions: .*What was done is kept: run again to go on"):
        annotate_tools(
            folder,
            [CALLS.model_copy(update={"max_samples": 2})],
            Running(restart=True, console=Console(quiet=True)),
            there,
            AnnotateSettings(),
        )
    with pytest.raises(StageError, match="--server: url must be an address"):
        ModelChoice(tmp_path / "told", server="nowhere").load()
