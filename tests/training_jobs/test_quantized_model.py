"""M with int8 or int4 weights, as ``--precision`` says."""

from pathlib import Path

import pytest
import torch
from rich.console import Console

from language_model.bulk.interface import Targets
from language_model.native import library
from language_model.native.compiled import CompiledGPTJ
from language_model.native.packing import Weights
from tests.training_jobs.calling_models import CALLS
from tests.training_jobs.runner.tiny_run import write_corpus, write_model
from training_jobs.annotate import AnnotateSettings
from training_jobs.annotate.job import annotate_tools
from training_jobs.errors import StageError
from training_jobs.filter import ScoreSettings
from training_jobs.filter.job import score_tools
from training_jobs.model_choice import ModelChoice, Precision
from training_jobs.records import Annotated
from training_jobs.run_folder import RunFolder
from training_jobs.runner.running import Running

QUIET = Running(console=Console(quiet=True))


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        library.load()
    except library.Unavailable as why:
        pytest.skip(str(why))


def test_it_proposes_and_scores_nearly_as_in_float32(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    write_corpus(tmp_path / "run", 6)
    folder = RunFolder(tmp_path / "run")
    quantized = ModelChoice(tmp_path / "model", precision="int8")
    assert annotate_tools(folder, [CALLS], QUIET, quantized, AnnotateSettings())
    annotated = folder.file("annotate", "A").read_text(encoding="utf-8")
    assert '"input":' in annotated
    folder.target("execute", "A").write_text(annotated.replace('"output":null', '"output":"1 is"'), encoding="utf-8")
    gains: list[list[float | None]] = []
    for choice in (quantized, ModelChoice(tmp_path / "model")):
        assert score_tools(folder, [CALLS], Running(restart=True, console=QUIET.console), choice, ScoreSettings())
        lines = folder.file("score", "A").read_text(encoding="utf-8").splitlines()
        gains.append([one.gain for line in lines for one in Annotated.from_line(line).candidates])
    assert gains[0] == pytest.approx(gains[1], abs=0.1)
    assert gains[0] != gains[1]


@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_scores_are_those_of_the_quantized_weights(tmp_path: Path, precision: Precision) -> None:
    model, _ = ModelChoice(write_model(tmp_path), precision=precision).load()
    packed = CompiledGPTJ.load(tmp_path, Weights[precision.upper()])
    ids = (0, *range(40, 90))
    logits = packed.extend_every(packed.new_cache(1), 0, ids[:-1])
    want = torch.log_softmax(logits, dim=-1)[torch.arange(len(ids) - 1), torch.tensor(ids[1:])].tolist()
    [scores] = model.score([Targets(ids, tuple(range(1, len(ids))))])
    assert scores == pytest.approx(want, abs=1e-5)
    assert model.begin_id == 0


def test_settings_know_the_weights_and_not_what_is_made_of_them(tmp_path: Path) -> None:
    choice = ModelChoice(write_model(tmp_path), precision="int8")
    before = choice.settings()
    choice.load()
    assert choice.settings() == before
    assert before["precision"] == "int8"
    (tmp_path / "model.safetensors").unlink()  # the quantized ones are what there is now
    assert "int8/SHA256SUMS" in choice.settings()["model"]
    choice.load()


def test_it_is_for_processors(tmp_path: Path) -> None:
    choice = ModelChoice(write_model(tmp_path), device="cuda", precision="int4")
    with pytest.raises(StageError, match="precision int4 is for GPT-J in compiled code on a CPU: take bfloat16"):
        choice.load()
