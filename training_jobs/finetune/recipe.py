"""The numbers of a finetuning run; the defaults are the paper's (section 4.1)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from training_jobs.stages.errors import StageError
from training_jobs.stages.parts import write_whole

IDENTITY_FILE: Final = "run.json"

Schedule = Literal["constant", "linear", "cosine"]
Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What the curve of a run depends on, besides model and texts.

    ``steps``: of the optimizer, at most. ``epochs``: passes over the texts, at most; a pass goes over each file of
    texts as often as ``times`` says of it (empty: once). ``batch``: texts of a step.
    ``rate``: the learning rate after ``warmup``, the share of the steps in which it rises from 0; from there on it
    follows ``schedule`` (the paper says no more: constant). ``sequence_length``, ``examples_per_tool``,
    ``held_out_texts``: tokens and texts, at most. ``evaluate_every``: steps between measures of perplexity.
    ``patience``: measures without a better one that end a run. ``begin_share``: of the texts begin with the
    end-of-text mark (as a scored text does; a prompt does not). ``mask_results``: leave the tokens of tool answers out
    of the loss. ``precision``: of products; weights and updates are float32 (with LoRA the frozen weights are in
    ``precision`` too). ``lora_rank``: 0 trains all weights.

    Raises:
        StageError: if a number is out of its range; the message names the option.
    """

    steps: int = 2_000
    epochs: float | None = None
    times: tuple[int, ...] = ()
    batch: int = 128
    rate: float = 1e-5
    warmup: float = 0.1
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    clip: float = 1.0
    sequence_length: int = 1_024
    examples_per_tool: int = 25_000
    held_out_texts: int = 1_000
    evaluate_every: int = 500
    patience: int | None = None
    begin_share: float = 0.5
    mask_results: bool = False
    precision: Precision = "bfloat16"
    lora_rank: int = 0
    lora_alpha: float = 32.0
    lora_dropout: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        at_least_one = ("steps", "batch", "examples_per_tool", "held_out_texts", "evaluate_every")
        for name in at_least_one:
            _require(getattr(self, name) >= 1, name, "must be at least 1", getattr(self, name))
        _require(self.sequence_length >= 2, "sequence_length", "must be at least 2", self.sequence_length)
        _require(self.patience is None or self.patience >= 1, "patience", "must be at least 1", self.patience)
        _require(self.epochs is None or self.epochs > 0, "epochs", "must be above 0", self.epochs)
        _require(all(times >= 1 for times in self.times), "times", "must be at least 1", min(self.times, default=1))
        _require(self.rate > 0, "rate", "must be above 0", self.rate)
        for name in ("weight_decay", "clip", "lora_rank", "lora_alpha"):
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


def begin_run(out: Path, recipe: Recipe, inputs: Mapping[str, Any]) -> None:
    """Write down in ``out`` what the run there is; ``inputs``: digests of model and texts.

    Raises:
        StageError: if ``out`` holds a run of another recipe, model or texts; the message names what differs.
    """
    told = json.loads(json.dumps({"recipe": asdict(recipe), "inputs": inputs}))
    path = out / IDENTITY_FILE
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(told, indent=2) + "\n").encode())
        return
    try:
        before = json.loads(path.read_bytes())
        different = sorted(
            name
            for part in ("recipe", "inputs")
            for name in told[part].keys() | before[part].keys()
            if told[part].get(name) != before[part].get(name)
        )
    except (ValueError, KeyError, AttributeError) as error:
        raise StageError(f"{path}: is not a run's ({error}); give another --out") from error
    if different:
        raise StageError(f"--out: {out} holds another run ({', '.join(different)} differ): give another --out")
