"""Stages' models on servers. What a stage makes with one is tested on a real vLLM, in tests/engines."""

from pathlib import Path

import pytest
from rich.console import Console

from tests.training_jobs.answering_server import SCORES, TARGETS, answering_server
from tests.training_jobs.calling_models import CALLS
from tests.training_jobs.runner.tiny_run import write_corpus, write_model
from training_jobs.annotate import AnnotateSettings
from training_jobs.annotate.job import annotate_tools
from training_jobs.errors import StageError
from training_jobs.model_choice import ModelChoice
from training_jobs.run_folder import RunFolder
from training_jobs.runner.running import Running


def test_a_server_that_is_away_ends_the_stage_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("language_model.bulk.server.time.sleep", lambda seconds: None)
    model = write_model(tmp_path / "model")
    (model / "model.safetensors").unlink()
    write_corpus(tmp_path / "run", 2)
    away = ModelChoice(model, server="http://127.0.0.1:9", served_as="m")
    quiet = Running(console=Console(quiet=True))
    with pytest.raises(StageError, match=r"/v1/completions: .*What was done is kept: run again to go on"):
        annotate_tools(RunFolder(tmp_path / "run"), [CALLS], quiet, away, AnnotateSettings())


def test_a_server_is_shown_its_key(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    with (
        answering_server() as state,
        ModelChoice(model, server=state.url, served_as="m", server_key="secret").opened() as (served, _),
    ):
        assert served.score(TARGETS) == SCORES


def test_an_address_that_is_none(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    with pytest.raises(StageError, match="--server: url must be an address"):
        ModelChoice(model, server="nowhere").load()
