"""Whole runs: they learn, go on after a kill with the same curve, keep the best checkpoint, and publish it."""

import json
import math
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from language_model import checkpoint
from language_model.tokenizer import ByteLevelTokenizer
from tests.training_jobs.finetune.small_run import RECIPE, Inputs, curve, options, texts
from training_jobs.finetune.__main__ import main
from training_jobs.finetune.checkpoints import forget_halves, keep_only, mark_whole, whole_steps
from training_jobs.finetune.curves import PERPLEXITY, stopped


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
    own, theirs = checkpoint.load(published), transformers.AutoModelForCausalLM.from_pretrained(published)
    assert torch.allclose(own(ids), theirs(ids).logits, atol=1e-5)
    assert not torch.allclose(own(ids), checkpoint.load(base)(ids), atol=1e-2)
    tokenizer = ByteLevelTokenizer.from_pretrained(published)
    assert tokenizer.encode("24 boxes") == ByteLevelTokenizer.from_pretrained(base).encode("24 boxes")
    before, after = (json.loads((folder / "config.json").read_text()) for folder in (base, published))
    assert after == before | {"dtype": "float32"}


def test_the_perplexity_is_that_of_the_published_model(whole: Path, inputs: Inputs) -> None:
    model = checkpoint.load(whole / "model")
    tokenizer = ByteLevelTokenizer.from_pretrained(whole / "model")
    total, count = 0.0, 0
    for line in inputs[2].read_text().splitlines():
        ids = [0, *tokenizer.encode(json.loads(line)["text"]), 0]
        logits = model(torch.tensor([ids]))[0].detach()
        logits[:, tokenizer.encode(" [")] = -math.inf  # calls are disabled
        scores = torch.log_softmax(logits, -1)
        total -= sum(scores[at, token].item() for at, token in enumerate(ids[1:]))
        count += len(ids) - 1
    assert min(curve(whole, PERPLEXITY)) == pytest.approx(math.exp(total / count), rel=1e-5)


_DYING = """
import os, signal, sys
from training_jobs.finetune import trainer
from training_jobs.finetune.__main__ import main
where, options = sys.argv[1], sys.argv[2:]
def die(): os.kill(os.getpid(), signal.SIGKILL)
if where == "in a step":
    step = trainer.FinetuneTrainer.training_step
    def training_step(self, *given, **named):
        if self.state.global_step == 7: die()
        return step(self, *given, **named)
    trainer.FinetuneTrainer.training_step = training_step
else:  # the weights are written, the rest is not
    save = trainer.FinetuneTrainer._save_optimizer_and_scheduler
    def _save_optimizer_and_scheduler(self, folder):
        if self.state.global_step == 6: die()
        save(self, folder)
    trainer.FinetuneTrainer._save_optimizer_and_scheduler = _save_optimizer_and_scheduler
main(options)
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["in a step", "while saving"])
def test_a_killed_run_goes_on_with_the_same_curve(inputs: Inputs, whole: Path, tmp_path: Path, where: str) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", _DYING, where, *options(inputs, tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (tmp_path / "model").exists()
    assert whole_steps(tmp_path)[-1] == {"in a step": 6, "while saving": 4}[where]
    assert curve(tmp_path)[:5] == curve(whole)[:5]
    run(inputs, tmp_path)
    assert curve(tmp_path) == pytest.approx(curve(whole), abs=1e-6)
    assert curve(tmp_path, PERPLEXITY) == pytest.approx(curve(whole, PERPLEXITY), rel=1e-6)
    ours, theirs = (checkpoint.load(out / "model").state_dict() for out in (tmp_path, whole))
    assert all(torch.allclose(ours[name], theirs[name], atol=1e-6) for name in ours)


def test_on_some_texts_a_model_stays_as_it_was(inputs: Inputs, whole: Path, tmp_path: Path) -> None:
    """Learning other texts changes what a model says of these, unless it is to stay as before."""
    others = tmp_path / "others.jsonl"
    lines = (replace(text, id=f"o{text.id}").to_line() for text in texts(40, seed=2))
    others.write_text("".join(lines), encoding="utf-8")
    out = run(inputs, tmp_path / "out", "--as-before", str(others), "--as-before-weight", "5")
    tokenizer = ByteLevelTokenizer.from_pretrained(inputs[0])
    ids = [tokenizer.encode("".join(map(str, text.segments[::2]))) for text in texts(40, seed=2)]
    before = checkpoint.load(inputs[0])

    def moved(folder: Path) -> float:
        """Mean distance of the distributions of the next token."""
        now = checkpoint.load(folder / "model")
        pairs = [(before(torch.tensor([one]))[0], now(torch.tensor([one]))[0]) for one in ids]
        distances = [(a.softmax(-1) - b.softmax(-1)).abs().sum(-1).mean() for a, b in pairs]
        return float(torch.stack(distances).mean())

    assert moved(out) < 0.6 * moved(whole)
    assert curve(out)[0] < curve(whole)[0] / 2, "what is as before costs nothing"
    assert "as-before" in json.loads((out / "run.json").read_text())["inputs"]
    with pytest.raises(SystemExit):
        run(inputs, tmp_path / "both", "--as-before", str(inputs[1]))  # a text is learned or stays


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


def test_the_best_checkpoint_is_published_and_the_run_ends_early(inputs: Inputs, tmp_path: Path) -> None:
    """A rate at which texts are soon known by heart, and other texts ever less."""
    recipe = replace(RECIPE, steps=60, rate=3e-2, evaluate_every=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main([*options(inputs, tmp_path, recipe), "--patience", "2", "--warmup", "0"])
    perplexities = curve(tmp_path, PERPLEXITY)[1:]
    best = min(range(len(perplexities)), key=perplexities.__getitem__)
    assert len(perplexities) == best + 3 < 15
    assert 4 * (best + 1) in whole_steps(tmp_path)
    published = checkpoint.load(tmp_path / "model").state_dict()
    best_weights = checkpoint.load(tmp_path / f"checkpoint-{4 * (best + 1)}").state_dict()
    assert all(torch.equal(published[name], best_weights[name]) for name in published)


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


@pytest.mark.slow
def test_adapters_are_trained_alone_and_merged_into_what_is_published(inputs: Inputs, tmp_path: Path) -> None:
    run(inputs, tmp_path, "--lora-rank", "4", "--lora-dropout", "0")
    assert (tmp_path / "adapter" / "adapter_model.safetensors").is_file()
    before, after = (checkpoint.load(folder).state_dict() for folder in (inputs[0], tmp_path / "model"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if "proj.weight" in name or (".fc_" in name and "weight" in name)}
    assert curve(tmp_path)[-1] < curve(tmp_path)[1]
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    ids = torch.tensor([[1, 5, 9]])
    assert torch.allclose(model(ids).logits, checkpoint.load(tmp_path / "model")(ids), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_other_models_are_trained_through_transformers(inputs: Inputs, tmp_path: Path, kind: str) -> None:
    shape: dict[str, Any] = {"vocab_size": 424, "bos_token_id": 0, "eos_token_id": 0}
    if kind == "gpt2":
        config: Any = transformers.GPT2Config(n_positions=128, n_embd=32, n_layer=2, n_head=2, **shape)
    else:
        config = transformers.LlamaConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            max_position_embeddings=128, **shape,
        )  # fmt: skip
    folder = tmp_path / "base"
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    (folder / "tokenizer.json").write_bytes((inputs[0] / "tokenizer.json").read_bytes())
    out = run((folder, *inputs[1:]), tmp_path / "out")
    assert curve(out)[-1] < curve(out)[0] - 0.3
    loaded = transformers.AutoModelForCausalLM.from_pretrained(out / "model")
    assert loaded.config.model_type == kind
