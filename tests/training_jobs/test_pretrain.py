"""Pretraining: it learns, resumes to the very same losses after a kill, and refuses another run's checkpoint."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from language_model import checkpoint
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.token_file import Tokens
from language_model.training_run import ahead
from training_jobs.pretrain import loop
from training_jobs.pretrain.loop import Precision, PretrainRecipe, batch_loss, main, pretrain
from training_jobs.pretrain.rows import LATE, Batch, batches_from, epoch_batches, make_batch
from training_jobs.pretrain.tokenizer import save_tokenizer, train_tokenizer

TINY = PretrainRecipe(
    steps=24,
    batch_tokens=256,
    width=16,
    layers=2,
    heads=2,
    rotary_dim=4,
    positions=64,
    checkpoint_every=5,
    peak_rate=1e-2,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents in which a short pattern repeats, so that there is something to learn."""
    out = tmp_path_factory.mktemp("corpus")
    save_tokenizer(train_tokenizer(["1 2 3"], vocab_size=300), out)
    rng = random.Random(0)
    documents = []
    for _ in range(200):
        pattern = [rng.randrange(1, 12) for _ in range(3)]
        ids = (pattern * 20)[: rng.randrange(6, 60)]
        documents.append((ids, [True] * len(ids)))
    Tokens.of(documents).save(out)
    return out


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run from beginning to end."""
    out = tmp_path_factory.mktemp("whole")
    pretrain(corpus, out, TINY)
    return out


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "loss.jsonl").read_text().splitlines()]


def it_learned(run: Path) -> bool:
    logged = losses(run)
    return len(logged) == TINY.steps and sum(logged[-4:]) / 4 < sum(logged[:4]) / 4 - 0.3


def test_products_in_bfloat16_learn_as_well(corpus: Path, whole: Path, tmp_path: Path) -> None:
    model = pretrain(corpus, tmp_path, replace(TINY, precision="bfloat16"))
    assert it_learned(tmp_path)
    assert losses(tmp_path) == pytest.approx(losses(whole), abs=0.1)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}


def test_muon_learns_and_goes_on_as_if_it_had_not_stopped(corpus: Path, tmp_path: Path) -> None:
    recipe = replace(TINY, optimizer="muon")
    pretrain(corpus, tmp_path / "whole", recipe)
    assert it_learned(tmp_path / "whole")
    pretrain(corpus, tmp_path / "stopped", recipe, stop_after=7)
    pretrain(corpus, tmp_path / "stopped", recipe)
    assert losses(tmp_path / "stopped") == losses(tmp_path / "whole")


def test_it_learns_and_a_stopped_run_goes_on_as_if_it_had_not_stopped(
    corpus: Path, whole: Path, tmp_path: Path
) -> None:
    assert it_learned(whole)
    pretrain(corpus, tmp_path, TINY, stop_after=7)
    assert not (tmp_path / "model").exists()
    pretrain(corpus, tmp_path, TINY, stop_after=9)
    model = pretrain(corpus, tmp_path, TINY)
    assert losses(tmp_path) == losses(whole)
    loaded, weights = checkpoint.load(whole / "model").state_dict(), model.state_dict()
    assert all(torch.equal(loaded[name], weights[name]) for name in loaded)
    assert (tmp_path / "model" / "tokenizer.json").exists()


def test_a_killed_process_resumes_to_the_same_losses(corpus: Path, whole: Path, tmp_path: Path) -> None:
    # The child kills itself in the middle of a step, past a checkpoint: no handler runs, nothing is flushed.
    program = (
        "import os, signal, sys; from pathlib import Path; from training_jobs.pretrain import loop as job\n"
        "from tests.training_jobs.test_pretrain import TINY\n"
        "loss, steps = job.batch_loss, iter(range(13))\n"
        "def dying(*given):\n"
        "    if next(steps, None) is None: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return loss(*given)\n"
        "job.batch_loss = dying\n"
        "job.pretrain(Path(sys.argv[1]), Path(sys.argv[2]), TINY)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, corpus, tmp_path / "killed"],
        env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, timeout=250,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert len(losses(tmp_path / "killed")) == 13
    pretrain(corpus, tmp_path / "killed", TINY)
    assert losses(tmp_path / "killed") == pytest.approx(losses(whole), abs=1e-5)


def test_another_recipe_does_not_go_on_with_this_run(corpus: Path, tmp_path: Path) -> None:
    pretrain(corpus, tmp_path, TINY, stop_after=1)
    with pytest.raises(ValueError, match="peak_rate"):
        pretrain(corpus, tmp_path, replace(TINY, peak_rate=1e-3))


def test_a_run_may_begin_with_a_models_weights(
    corpus: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pretrain(corpus, tmp_path / "more", TINY, start=whole / "model")
    assert losses(tmp_path / "more")[0] < losses(whole)[0] - 0.3
    wider = ["--corpus", str(corpus), "--out", str(tmp_path / "wider"), "--steps", "2", "--start"]
    for start, reason in ((whole / "model", "another shape"), (tmp_path / "none", "config.json")):
        with pytest.raises(SystemExit):
            main([*wider, str(start)])
        assert reason in capsys.readouterr().err


def test_a_missing_corpus_is_named_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--corpus", str(tmp_path / "none"), "--out", str(tmp_path / "run"), "--steps", "1"])
    assert "training_jobs.corpora.demonstrations" in capsys.readouterr().err


def test_the_rate_warms_up_and_falls_along_a_cosine() -> None:
    recipe = PretrainRecipe(steps=100, warmup=0.1, peak_rate=1.0, final_rate=0.0)
    assert recipe.rate(0) == pytest.approx(0.1)
    assert recipe.rate(9) == pytest.approx(1.0)
    assert recipe.rate(55) == pytest.approx(0.5)
    assert recipe.rate(99) == pytest.approx(0.0, abs=1e-3)


def test_the_rate_falls_in_the_cooldown_alone() -> None:
    recipe = PretrainRecipe(steps=100, warmup=5, peak_rate=1.0, final_rate=0.1, cooldown=0.2)
    assert [recipe.rate(step) for step in (0, 4, 5, 80, 81)] == pytest.approx([0.2, 1.0, 1.0, 1.0, 1.0])
    assert recipe.rate(90) < 0.6
    assert recipe.rate(99) == pytest.approx(0.1, abs=0.01)


def test_a_late_part_is_read_while_the_rate_falls(corpus: Path, tmp_path: Path) -> None:
    late = tmp_path / "corpus" / LATE
    shutil.copytree(corpus, late.parent)
    shutil.copytree(corpus, late)
    Tokens.of([([20, 21] * 9, [True] * 18) for _ in range(40)]).save(late)
    recipe = replace(TINY, steps=12, warmup=2, cooldown=0.5)
    pretrain(corpus, tmp_path / "plain", recipe)
    pretrain(late.parent, tmp_path / "whole", recipe)
    plain, whole = losses(tmp_path / "plain"), losses(tmp_path / "whole")
    assert [one == other for one, other in zip(plain, whole, strict=True)] == [True] * 7 + [False] * 5
    pretrain(late.parent, tmp_path / "stopped", recipe, stop_after=9)
    pretrain(late.parent, tmp_path / "stopped", recipe)
    assert losses(tmp_path / "stopped") == whole


def test_a_run_by_the_clock_ends_when_its_time_is_over_and_reads_the_late_part_at_last(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(corpus, tmp_path / "corpus")
    (tmp_path / "corpus" / LATE).mkdir()
    Tokens.of([([21] * 30, [True] * 30)] * 8).save(tmp_path / "corpus" / LATE)
    read: list[bool] = []
    of_batch = loop.batch_loss

    def noted(model: GPTJ, batch: Batch, hidden_of: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        read.append(bool((batch.ids == 21).any()))
        return of_batch(model, batch, hidden_of)

    ticks = iter(range(10**6))
    clock = SimpleNamespace(monotonic=lambda: next(ticks), perf_counter=time.perf_counter)
    monkeypatch.setattr(loop, "time", clock)
    monkeypatch.setattr(loop, "batch_loss", noted)
    recipe = replace(TINY, steps=10**6, warmup=5, cooldown=0.5, final_rate=1e-4)
    pretrain(tmp_path / "corpus", tmp_path / "run", recipe, seconds=200)
    rates = [json.loads(line)["rate"] for line in (tmp_path / "run" / "loss.jsonl").read_text().splitlines()]
    assert len(rates) == len(read) < 200
    assert read == sorted(read)
    assert 0.3 < read.count(True) / len(read) < 0.7
    assert rates[0] < rates[10] == 1e-2
    assert rates[-1] == pytest.approx(1e-4, abs=1e-4)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()
    with pytest.raises(ValueError, match="more than 0"):
        pretrain(tmp_path / "corpus", tmp_path / "none", recipe, seconds=0)
    with pytest.raises(ValueError, match="run at one go"):
        pretrain(tmp_path / "corpus", tmp_path / "run", recipe, seconds=200)


def test_a_run_may_become_longer_before_its_cooldown_and_not_in_it(corpus: Path, tmp_path: Path) -> None:
    def recipe(steps: int) -> PretrainRecipe:
        return replace(TINY, steps=steps, warmup=2, cooldown=0.25)

    pretrain(corpus, tmp_path / "straight", recipe(12))
    pretrain(corpus, tmp_path / "longer", recipe(8), stop_after=5)
    pretrain(corpus, tmp_path / "longer", recipe(12))
    assert losses(tmp_path / "longer") == pytest.approx(losses(tmp_path / "straight"), abs=1e-5)
    pretrain(corpus, tmp_path / "late", recipe(8), stop_after=8)
    with pytest.raises(ValueError, match="steps differ"):
        pretrain(corpus, tmp_path / "late", recipe(12))


def test_tokens_that_are_not_learned_do_not_count(corpus: Path) -> None:
    config = GPTJConfig(vocab_size=300, n_positions=64, n_embd=16, n_layer=1, n_head=2, rotary_dim=4)
    model = GPTJ.from_config(config).eval()
    tokens = Tokens.of([([5, 6, 7, 8], [True, True, False, True]), ([9, 10], [True, True])])
    batch = make_batch(tokens, [0, 1], max_length=64)
    log_probs = torch.log_softmax(model(batch.ids), -1)
    expected = -(log_probs[0, 0, 6] + log_probs[0, 2, 8] + log_probs[1, 0, 10]) / 3
    assert batch_loss(model, batch).item() == pytest.approx(expected.item(), abs=1e-6)
    assert math.isfinite(expected.item())


def test_batches_made_ahead_are_the_same_and_so_is_what_fails(corpus: Path) -> None:
    def batches() -> Iterator[Batch]:
        yield from islice(batches_from(Tokens.load(corpus), step=0, batch_tokens=256, max_length=64, seed=0), 5)
        raise OSError("the disk is gone")

    made = ahead(batches(), 2)
    for one in islice(batches(), 5):
        assert torch.equal(next(made).ids, one.ids)
    with pytest.raises(OSError, match="disk"):
        next(made)


def test_rows_of_one_size_are_not_compiled_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    model = GPTJ.from_config(GPTJConfig(vocab_size=300, n_positions=64, n_embd=16, n_layer=1, n_head=2, rotary_dim=4))
    compiled: list[tuple[int, ...]] = []

    def compile_(hidden: Callable[[torch.Tensor], torch.Tensor], *, dynamic: bool) -> Any:
        def noted(ids: torch.Tensor) -> torch.Tensor:
            compiled.append(tuple(ids.shape))
            return hidden(ids)

        assert dynamic
        return noted

    monkeypatch.setattr(torch, "compile", compile_)
    hidden_of = loop._compiled(model)
    for shape in ((1, 9), (4, 1), (4, 9)):
        assert hidden_of(torch.ones(shape, dtype=torch.long)).shape == (*shape, 16)
    assert compiled == [(4, 9)]


def test_an_epoch_reads_every_document_once_within_the_budget(corpus: Path) -> None:
    tokens = Tokens.load(corpus)
    batches = epoch_batches(tokens, batch_tokens=256, max_length=64, seed=0, epoch=0)
    assert sorted(number for batch in batches for number in batch) == list(range(tokens.documents))
    assert all(make_batch(tokens, batch, max_length=64).ids.numel() <= 256 for batch in batches)
    assert epoch_batches(tokens, batch_tokens=256, max_length=64, seed=0, epoch=1) != batches


def test_batches_from_a_step_are_those_after_it(corpus: Path) -> None:
    tokens = Tokens.load(corpus)
    per_epoch = len(epoch_batches(tokens, batch_tokens=256, max_length=64, seed=0, epoch=0))
    from_start = batches_from(tokens, step=0, batch_tokens=256, max_length=64, seed=0)
    skipped = [next(from_start) for _ in range(per_epoch + 3)]
    later = batches_from(tokens, step=per_epoch + 2, batch_tokens=256, max_length=64, seed=0)
    assert torch.equal(next(later).ids, skipped[-1].ids)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_reported(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--corpus", str(corpus), "--out", str(tmp_path), "--steps", "1", "--device", "cuda"])
    assert "--device cuda: torch finds no GPU here" in capsys.readouterr().err


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_run_goes_on_on_a_gpu(corpus: Path, tmp_path: Path, precision: Precision) -> None:
    recipe = replace(TINY, precision=precision)
    pretrain(corpus, tmp_path, recipe, stop_after=5)
    pretrain(corpus, tmp_path, recipe, device="cuda")
    assert it_learned(tmp_path)
