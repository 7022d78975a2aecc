"""Whole runs: they learn, go on after a kill with the same curve, keep the best checkpoint, and publish it."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from language_model.gptj import GPTJ
from language_model.tokenizer import ByteLevelTokenizer
from tests.training_jobs.finetune.small_run import RECIPE, curve, options, texts, write_inputs
from training_jobs.finetune.__main__ import main
from training_jobs.finetune.checkpoints import forget_halves, keep_only, mark_whole, whole_steps
from training_jobs.finetune.curves import PERPLEXITY, stopped

Inputs = tuple[Path, Path, Path]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return write_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def whole(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from beginning to end."""
    return run(inputs, tmp_path_factory.mktemp("whole"))


def run(inputs: Inputs, out: Path, *more: str) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries' own making
        main([*options(inputs, out), *more])
    return out


def test_the_loss_falls_and_the_curve_is_written(whole: Path) -> None:
    losses, perplexities = curve(whole), curve(whole, PERPLEXITY)
    assert len(losses) == RECIPE.steps
    assert len(perplexities) == 1 + RECIPE.steps // RECIPE.evaluate_every
    assert losses[-1] < losses[0] - 1
    assert perplexities == sorted(perplexities, reverse=True)
    assert (whole / "curves.svg").read_text().count("<path") > 2
    assert list((whole / "tensorboard").glob("events.*"))


def test_the_rate_rises_over_the_first_tenth(whole: Path) -> None:
    assert curve(whole, "learning_rate") == pytest.approx([0.0, RECIPE.rate / 2, *[RECIPE.rate] * 10])


def test_the_published_model_is_the_same_everywhere(whole: Path, inputs: Inputs) -> None:
    published, base = whole / "model", inputs[0]
    ids = torch.tensor([[1, 5, 9, 300]])
    own, theirs = GPTJ.from_pretrained(published), transformers.AutoModelForCausalLM.from_pretrained(published)
    assert torch.allclose(own(ids), theirs(ids).logits, atol=1e-5)
    assert not torch.allclose(own(ids), GPTJ.from_pretrained(base)(ids), atol=1e-2)
    tokenizer = ByteLevelTokenizer.from_pretrained(published)
    assert tokenizer.encode("24 boxes") == ByteLevelTokenizer.from_pretrained(base).encode("24 boxes")
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (base, published))
    assert after == before | {"dtype": "float32"}


def test_the_perplexity_is_that_of_the_published_model(whole: Path, inputs: Inputs) -> None:
    model = GPTJ.from_pretrained(whole / "model")
    tokenizer = ByteLevelTokenizer.from_pretrained(whole / "model")
    total, count = 0.0, 0
    for line in inputs[2].read_text().splitlines():
        ids = [0, *tokenizer.encode(json.loads(line)["text"]), 0]
        scores = torch.log_softmax(model(torch.tensor([ids])), -1)[0]
        total -= sum(scores[at, token].item() for at, token in enumerate(ids[1:]))
        count += len(ids) - 1
    assert min(curve(whole, PERPLEXITY)) == pytest.approx(math.exp(total / count), rel=1e-5)


def test_a_run_that_is_done_is_not_done_again(whole: Path, inputs: Inputs, capsys: pytest.CaptureFixture[str]) -> None:
    before = (whole / "model" / "model.safetensors").stat().st_mtime_ns
    run(inputs, whole)
    assert "the run is done" in capsys.readouterr().err
    assert (whole / "model" / "model.safetensors").stat().st_mtime_ns == before


def test_another_run_is_refused_with_what_differs(
    whole: Path, inputs: Inputs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("".join(text.to_line() for text in texts(9, seed=2)), encoding="utf-8")
    with pytest.raises(SystemExit):
        main([*options((inputs[0], other, inputs[2]), whole, replace(RECIPE, rate=1e-4))])
    assert "holds another run (rate, texts differ)" in capsys.readouterr().err


def test_when_a_run_ends_early() -> None:
    def history(*perplexities: float) -> list[dict[str, Any]]:
        return [{"step": step, PERPLEXITY: value} for step, value in enumerate(perplexities)]

    assert not stopped(history(1.0, 9.0, 8.0), None)
    assert not stopped(history(1.0, 9.0, 8.0, 7.0), 1)
    assert stopped(history(1.0, 9.0, 8.0, 8.0), 1)
    assert not stopped(history(1.0, 9.0, 8.0, 8.5), 2)
    assert not stopped(history(1.0, 9.0, 8.0, 8.5, 7.9), 2)
    assert stopped(history(1.0, 9.0, 8.0, 8.5, 8.1), 2)


def test_only_whole_checkpoints_count(tmp_path: Path) -> None:
    for step in (3, 12, 100):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "model").mkdir()
    mark_whole(tmp_path, 3)
    mark_whole(tmp_path, 12)
    assert whole_steps(tmp_path) == [3, 12]
    forget_halves(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-3", "checkpoint-12", "model"}
    keep_only(tmp_path, {12})
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-12", "model"}
    assert whole_steps(tmp_path / "none") == []
