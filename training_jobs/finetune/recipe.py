"""The numbers of a finetuning run; the defaults are the paper's (section 4.1)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from training_jobs.errors import StageError
from training_jobs.runner.parts import differing, write_json
from training_jobs.settings import setting

IDENTITY_FILE: Final = "run.json"

Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class FinetuneRecipe:
    """What the curve of a run depends on, besides model and texts.

    ``times`` empty: once each. The paper says no more of the rate than its warmup, so it is ``constant`` after it.
    ``begin_share``: a scored text begins with the end-of-text mark, a prompt does not. ``precision``: of products;
    weights and updates are float32 (with LoRA the frozen weights are in ``precision`` too).

    Raises:
        StageError: if a number is out of its range; the message names the option.
    """

    steps: int = setting(2_000, "of the optimizer, at most")
    epochs: float | None = setting(None, "passes over the texts, at most; by default --steps decides")
    times: tuple[int, ...] = setting(
        (), "how often a pass goes over each file of --texts, a number for each; by default once", metavar="N"
    )
    batch: int = setting(128, "texts of a step, over all processes")
    rate: float = setting(1e-5, "learning rate")
    warmup: float = setting(0.1, "share of the steps in which the rate rises from 0")
    schedule: Schedule = setting("constant", "of the rate after that")
    weight_decay: float = setting(0.0, "of AdamW")
    clip: float = setting(1.0, "largest norm of a gradient; 0 for any")
    sequence_length: int = setting(1_024, "tokens, at most")
    examples_per_tool: int = setting(25_000, "texts with its calls, at most")
    held_out_texts: int = setting(1_000, "the first so many")
    evaluate_every: int = setting(500, "steps between measures of perplexity, by which the step to keep is chosen")
    patience: int | None = setting(None, "end after so many measures without a better one; by default never")
    begin_share: float = setting(0.5, "of texts begin with the end-of-text mark")
    as_before_weight: float = setting(1.0, "of the texts of --as-before in the loss")
    mask_results: bool = setting(False, "leave what tools answered out of the loss")
    precision: Precision = setting("bfloat16", "of products")
    lora_rank: int = setting(0, "of LoRA's adapters, which fit one small GPU; 0 trains all weights")
    lora_alpha: float = setting(32.0, "their scale times rank")
    lora_dropout: float = setting(0.05, "before them")
    seed: int = setting(0, "draws the order of the texts")

    def __post_init__(self) -> None:
        at_least_one = ("steps", "batch", "examples_per_tool", "held_out_texts", "evaluate_every")
        for name in at_least_one:
            _require(getattr(self, name) >= 1, name, "must be at least 1", getattr(self, name))
        _require(self.sequence_length >= 2, "sequence_length", "must be at least 2", self.sequence_length)
        _require(self.patience is None or self.patience >= 1, "patience", "must be at least 1", self.patience)
        _require(self.epochs is None or self.epochs > 0, "epochs", "must be above 0", self.epochs)
        _require(all(times >= 1 for times in self.times), "times", "must be at least 1", min(self.times, default=1))
        _require(self.rate > 0, "rate", "must be above 0", self.rate)
        for name in ("weight_decay", "clip", "lora_rank", "lora_alpha", "as_before_weight"):
            _require(getattr(self, name) >= 0, name, "must be 0 or more", getattr(self, name))
        for name in ("warmup", "begin_share", "lora_dropout"):
            _require(0 <= getattr(self, name) <= 1, name, "must be between 0 and 1", getattr(self, name))

    def steps_for(self, texts: int) -> int:
        """Steps of a run over so many texts."""
        return self.steps if self.epochs is None else min(self.steps, math.ceil(self.epochs * texts / self.batch))

    def warmup_steps(self, steps: int) -> int:
        """Steps in which the rate rises."""
        return math.ceil(self.warmup * steps)


def _require(good: bool, name: str, rule: str, found: object) -> None:
    if not good:
        raise StageError(f"--{name.replace('_', '-')}: {rule}, not {found}")


def begin_run(out: Path, recipe: FinetuneRecipe, inputs: Mapping[str, Any]) -> None:
    """Write down in ``out`` what the run there is; ``inputs``: digests of model and texts.

    Raises:
        StageError: if ``out`` holds a run of another recipe, model or texts; the message names what differs.
    """
    identity = json.loads(json.dumps({"recipe": asdict(recipe), "inputs": inputs}))
    path = out / IDENTITY_FILE
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_json(path, identity)
        return
    try:
        before = json.loads(path.read_bytes())
        different = ", ".join(filter(None, (differing(before[part], identity[part]) for part in identity)))
    except (ValueError, KeyError, AttributeError) as error:
        raise StageError(f"{path}: is not a run's ({error}); give another --out") from error
    if different:
        raise StageError(f"--out: {out} holds another run ({different} differ): give another --out")
