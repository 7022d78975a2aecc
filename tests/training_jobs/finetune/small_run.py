"""A run, tiny: a GPT-J of random weights, texts of a line with calls in them, twelve steps."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from language_model import checkpoint
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from tests.support.vocabularies import save_small_tokenizer
from training_jobs.finetune.recipe import FinetuneRecipe
from training_jobs.records import CallSegment, Document, Merged

SHAPE: Final = GPTJConfig(
    vocab_size=424, n_positions=128, n_embd=32, n_layer=2, n_head=2, rotary_dim=8, bos_token_id=0, eos_token_id=0
)
RECIPE: Final = FinetuneRecipe(
    steps=12, batch=8, rate=3e-3, sequence_length=96, held_out_texts=10, evaluate_every=4, precision="float32"
)

Inputs = tuple[Path, Path, Path]
"""Model, C* and held-out texts."""

_WORDS: Final = ["One", "is", "24", "boxes", "Peru", "Lima", "“day”", "11", "so", "town"]


def write_model(folder: Path, shape: GPTJConfig = SHAPE) -> Path:
    """A checkpoint in ``folder``."""
    checkpoint.save(GPTJ.from_config(shape), folder)
    save_small_tokenizer(folder)
    return folder


def texts(count: int, seed: int = 1) -> list[Merged]:
    """Texts with a call of the calculator in each, of different lengths."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        before = " ".join(draw.choices(_WORDS, k=draw.randint(1, 12)))
        call = CallSegment("Calculator", f"{number} + 1", f"{number + 1}")
        found.append(Merged(f"t{number:03d}", (before, call, f" {number + 1} so."), (1.0,)))
    return found


def write_inputs(folder: Path) -> Inputs:
    """What a run reads, in ``folder``."""
    model = write_model(folder / "base")
    stars, held_out = folder / "with_calls.jsonl", folder / "held_out.jsonl"
    stars.write_text("".join(text.to_line() for text in texts(40)), encoding="utf-8")
    plain = (Document(f"h{n}", f"{n} boxes is 1{n} town so") for n in range(10))
    held_out.write_text("".join(document.to_line() for document in plain), encoding="utf-8")
    return model, stars, held_out


def options(inputs: Inputs, out: Path, recipe: FinetuneRecipe = RECIPE) -> list[str]:
    """The command's arguments."""
    model, stars, held_out = inputs
    given = ["--model", model, "--texts", stars, "--held-out", held_out, "--out", out, "--steps", recipe.steps]
    given += ["--batch", recipe.batch, "--rate", recipe.rate, "--sequence-length", recipe.sequence_length]
    given += ["--held-out-texts", recipe.held_out_texts, "--evaluate-every", recipe.evaluate_every]
    given += ["--precision", recipe.precision, "--micro-batch-tokens", 128, "--save-every", 3, "--threads", 1]
    return [*map(str, given), "--device", "cpu"]


def command(arguments: Sequence[str], *, processes: int = 1, timeout: float = 250) -> subprocess.CompletedProcess[str]:
    """Run the command; with ``torchrun`` for several processes."""
    start = [sys.executable, "-m"]
    if processes > 1:
        start += ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}", "--module"]
    return subprocess.run(
        [*start, "training_jobs.finetune", *arguments], env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


def curve(out: Path, name: str = "loss") -> list[float]:
    """The losses of a run's steps, or its perplexities."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in (out / "curve.jsonl").read_text().splitlines()]
    return [line[name] for line in lines if name in line]
