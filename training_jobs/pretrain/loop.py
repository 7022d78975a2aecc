"""Train a small GPT-J from nothing on an encoded corpus.

    python -m training_jobs.pretrain --corpus DIR --out RUN --steps 4000

Seeded; may be killed at any moment and started again with the same command: it goes on from the last checkpoint and
sees the same batches in the same order. With ``--cooldown 0.2`` the rate falls in the last fifth alone, so that until
then a run can still be made longer or shorter (``--steps``); there the corpus' part ``late`` is read, if it has one.
With ``--seconds`` a run ends by the clock in place of ``--steps``, and so does all that comes late: for a machine that
is lent for minutes, and to be run at one go.
The finished model is in ``RUN/model`` as a Hugging Face checkpoint.

Tokens that a tool's result splices in are left out of the loss: at inference they are never sampled, and most of
them (a population, a product) cannot be foreseen, so learning them by heart would only take room from learning to
copy.
"""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import torch
from rich.console import Console
from torch import Tensor

from language_model import checkpoint
from language_model.config import CheckpointError, GPTJConfig
from language_model.gptj import GPTJ
from language_model.head_loss import head_loss
from language_model.optimizers import Optimizing, optimizers
from language_model.token_file import Tokens
from language_model.tokenizer import ByteLevelTokenizer
from language_model.training_run import TrainingRun, ahead
from training_jobs.pretrain.rows import LATE, Batch, batches_from, batches_until
from training_jobs.runner.progress import StageProgress
from training_jobs.settings import add_settings, read_settings, setting

_BETAS: Final = (0.9, 0.95)
_AHEAD: Final = 8
"""Batches that are made while a GPU computes."""
_LENGTH: Final = {"steps", "warmup", "cooldown", "checkpoint_every"}
"""What may be changed in a run that is under way, if the steps done so far would have been the same."""

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class PretrainRecipe:
    """What a run is. ``rate`` rises over ``warmup``, is ``peak_rate``, and falls along a cosine to ``final_rate``;
    weights and their updates are float32, whatever the ``precision`` of the products."""

    steps: int = setting(help="of the optimizer")
    seed: int = setting(0, "draws the order of the rows, and the first weights")
    batch_tokens: int = setting(4096, "tokens of a step, padding and all")
    peak_rate: float = setting(2e-3, "highest learning rate")
    final_rate: float = setting(1e-4, "learning rate at the end")
    warmup: float = setting(0.04, "steps in which the rate rises or, below 1, their share")
    cooldown: float = setting(1.0, "share of the steps after them, the last ones, in which it falls")
    optimizer: Optimizing = setting("adamw", "of the layers' matrices")
    weight_decay: float = setting(0.05, "of matrices")
    clip: float = setting(1.0, "largest norm of a gradient")
    width: int = setting(256, "of the model")
    layers: int = setting(4, "of the model")
    heads: int = setting(4, "of the model's attention")
    rotary_dim: int = setting(32, "dimensions of a head that are rotated")
    positions: int = setting(512, "longest text of the model, in tokens")
    checkpoint_every: int = setting(200, "steps between checkpoints")
    precision: Precision = setting("float32", "of products: in bfloat16, if the processor has units for it, faster")

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number (from 0)."""
        if step < self._warm:
            return self.peak_rate * (step + 1) / self._warm
        return self._fallen(max(0.0, 1 - (self.steps - step) / max(1, self.steps - self.falls_from)))

    def rate_by_clock(self, step: int, share: float) -> float:
        """The same of a run that ends by the clock, after this ``share`` of its time."""
        return min(1.0, (step + 1) / self._warm) * self._fallen(
            min(1.0, max(0.0, 1 - (1 - share) / max(self.cooldown, 1e-9)))
        )

    def _fallen(self, progress: float) -> float:
        return self.final_rate + (self.peak_rate - self.final_rate) * (1 + math.cos(math.pi * progress)) / 2

    @property
    def falls_from(self) -> int:
        """The step from which on the rate falls."""
        return self.steps - max(1, round(self.cooldown * (self.steps - self._warm)))

    @property
    def _warm(self) -> int:
        return max(1, round(self.warmup * self.steps if self.warmup < 1 else self.warmup))


def batch_loss(model: GPTJ, batch: Batch, hidden_of: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """Mean cross-entropy in nats over the batch's learned tokens, each predicted from those before it. ``hidden_of`` is
    the model's `hidden`, or the same compiled."""
    learned = batch.learned[:, 1:]
    hidden = (hidden_of or model.hidden)(batch.ids[:, :-1])[learned]
    return head_loss(hidden, model.lm_head.weight, model.lm_head.bias, batch.ids[:, 1:][learned])


def pretrain(
    corpus: Path,
    out: Path,
    recipe: PretrainRecipe,
    *,
    start: Path | None = None,
    stop_after: int | None = None,
    seconds: float | None = None,
    device: str | torch.device = "cpu",
) -> GPTJ:
    """Train (or go on training) in ``out`` and return the model, on the CPU. ``start`` is a model folder whose weights
    a new run begins with; ``stop_after`` ends this process's part after so many steps; in place of the recipe's steps
    ``seconds`` end a whole run, whatever the number of steps comes to be; ``device`` is where the work is done, and a
    run may go on on another.

    Raises:
        FileNotFoundError: if the corpus has not been made.
        ValueError: if ``out`` holds a run of another recipe, or any that would go on by the clock; or ``start`` a model
            of another shape.
        CheckpointError: if ``start`` holds no model that can be loaded.
    """
    if seconds is not None and seconds <= 0:
        raise ValueError(f"--seconds must be more than 0, not {seconds:g}")
    started = time.monotonic()

    def share() -> float:
        return (time.monotonic() - started) / (seconds or math.inf)

    def rate(step: int) -> float:
        return recipe.rate(step) if seconds is None else recipe.rate_by_clock(step, share())

    tokens = Tokens.load(corpus)
    late = Tokens.load(corpus / LATE) if recipe.cooldown < 1 and (corpus / LATE).exists() else None
    vocabulary = ByteLevelTokenizer.from_pretrained(corpus).vocab_size
    torch.manual_seed(recipe.seed)
    config = GPTJConfig(
        vocab_size=vocabulary, n_positions=recipe.positions, n_embd=recipe.width, n_layer=recipe.layers,
        n_head=recipe.heads, rotary_dim=recipe.rotary_dim, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    device = torch.device(device)
    model = (GPTJ.from_config(config, seed=recipe.seed) if start is None else _begun(start, config)).to(device).train()
    changing = optimizers(model, recipe.optimizer, betas=_BETAS, weight_decay=recipe.weight_decay)
    run = TrainingRun(out, model, changing, recipe, rate=rate, clip=recipe.clip, length=_LENGTH)
    if seconds is not None and run.step:
        raise ValueError(
            f"--seconds: a run that ends by the clock is run at one go, and {out} holds one: give another --out"
        )
    if not _same_so_far(PretrainRecipe(**run.before), recipe, run.step):
        differ = ", ".join(name for name in sorted(_LENGTH) if run.before[name] != getattr(recipe, name))
        raise ValueError(f"{out} holds a run of another recipe ({differ} differ): give another --out")
    last = recipe.steps if stop_after is None else min(recipe.steps, run.step + stop_after)
    shape = {"batch_tokens": recipe.batch_tokens, "max_length": recipe.positions, "seed": recipe.seed}
    if seconds is None or late is None:
        batches = batches_from(tokens, step=run.step, late=late, late_from=recipe.falls_from, **shape)
    else:
        batches = batches_until(lambda: share() > 1 - recipe.cooldown, tokens, late, **shape)
    hidden_of: Callable[[Tensor], Tensor] = model.hidden
    if device.type == "cuda":  # there a step of a small model is mostly its kernels' starts and Python's batches
        hidden_of, batches = _compiled(model), ahead(batches, _AHEAD)
    counted = 0

    def loss_of(step: int) -> Tensor:
        nonlocal counted
        batch = next(batches).to(device)
        counted = batch.ids.numel()
        # Entered anew at each step: autocast keeps its copies of the weights for as long as it lasts.
        with torch.autocast(device.type, torch.bfloat16, enabled=recipe.precision == "bfloat16"):
            return batch_loss(model, batch, hidden_of)

    with StageProgress("pretrain", recipe.steps, run.step, Console(stderr=True), unit="steps") as progress:
        began = time.perf_counter()
        for loss in run.steps(last, loss_of):
            began, spent = time.perf_counter(), time.perf_counter() - began
            run.log(loss=loss, rate=rate(run.step - 1), tokens_per_s=round(counted / spent))
            progress.advance(1, {"tokens": counted}, f"loss {loss:.3f}")
            over = share() >= 1
            if run.step % recipe.checkpoint_every == 0 or run.step == last or over:
                run.save()
            if over:
                break
    model = model.cpu()
    if seconds is not None or run.step == recipe.steps:
        checkpoint.save(model, out / "model")
        shutil.copyfile(corpus / "tokenizer.json", out / "model" / "tokenizer.json")
    return model.eval()


def _compiled(model: GPTJ) -> Callable[[Tensor], Tensor]:
    """The model's `hidden`, compiled for rows of any number and length; but not for sizes of 1, each of which would be
    compiled by itself."""
    compiled = torch.compile(model.hidden, dynamic=True)
    return lambda ids: (compiled if min(ids.shape) > 1 else model.hidden)(ids)


def _begun(folder: Path, config: GPTJConfig) -> GPTJ:
    model = checkpoint.load(folder)
    if model.config != config:
        raise ValueError(
            f"--start: {folder} holds a model of another shape ({model.config}): give its width, layers, "
            "heads, rotary dimensions and positions, and a corpus of its vocabulary"
        )
    return model.requires_grad_(True)


def _same_so_far(one: PretrainRecipe, other: PretrainRecipe, steps: int) -> bool:
    """Whether the first ``steps`` steps have the same rates, so that a run may still become longer or shorter."""
    return all(math.isclose(one.rate(step), other.rate(step), rel_tol=1e-12) for step in range(steps))


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m training_jobs.pretrain", description="Train a small GPT-J.")
    parser.add_argument("--corpus", type=Path, required=True, help="directory with an encoded corpus")
    parser.add_argument("--out", type=Path, required=True, help="directory of this run: checkpoint, loss.jsonl, model/")
    parser.add_argument("--start", type=Path, help="model folder whose weights a new run begins with")
    add_settings(parser, PretrainRecipe)
    parser.add_argument("--seconds", type=float, help="end by the clock, after so long, if --steps are not done before")
    parser.add_argument(
        "--device", choices=("cpu", "cuda"), help="where to train; on a GPU if there is one, by default"
    )
    options = parser.parse_args(arguments)
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        parser.error(
            "--device cuda: torch finds no GPU here; leave it out, or install torch with CUDA (make setup TORCH=cuda)"
        )
    device = options.device or ("cuda" if has_gpu else "cpu")
    try:
        recipe = read_settings(PretrainRecipe, options)
        pretrain(options.corpus, options.out, recipe, start=options.start, seconds=options.seconds, device=device)
    except (FileNotFoundError, ValueError, CheckpointError) as error:
        parser.error(str(error))
    print(f"model: {options.out / 'model'}")
