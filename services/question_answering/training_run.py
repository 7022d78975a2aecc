"""One model's training: seeded steps, a log of losses, checkpoints that a killed run goes on from."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

_STATE: Final = "state.pt"
_LOG: Final = "loss.jsonl"


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long and how fast a model learns: ``steps`` in which the rate climbs to ``peak_rate`` (``warmup``, a share
    of them) and falls along a cosine to a fiftieth of it, then ``drills`` times ``drill_steps`` in which it falls once
    more, from half of it (warm restarts; Loshchilov and Hutter, 2017)."""

    steps: int
    peak_rate: float
    drill_steps: int = 0
    drills: int = 1
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    checkpoint_every: int = 200

    @property
    def all_steps(self) -> int:
        """Steps of the whole run."""
        return self.steps + self.drills * self.drill_steps

    def ends_cycle(self, done: int) -> bool:
        """Whether the rate has fallen for the last time, or starts anew, when ``done`` steps are done."""
        return done == self.steps or (done > self.steps and (done - self.steps) % self.drill_steps == 0)

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number (from 0)."""
        if step >= self.steps:
            return _cosine(
                (step - self.steps) % self.drill_steps / self.drill_steps, 0.5 * self.peak_rate, 0.02 * self.peak_rate
            )
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.peak_rate * (step + 1) / warm
        return _cosine((step - warm) / max(1, self.steps - warm), self.peak_rate, 0.02 * self.peak_rate)


def _cosine(progress: float, first: float, last: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * progress)) / 2


class TrainingRun:
    """A model in training in a folder of its own; ``step`` counts the steps done.

    What comes of it is the mean of the weights at the ends of the rate's cycles (`averaged`), each of which found
    another way to be good (Izmailov et al., 2018).

    Raises:
        ValueError: the folder holds a run of another recipe.
    """

    def __init__(self, folder: Path, model: nn.Module, recipe: Any, schedule: Schedule) -> None:
        self.step = 0
        self._folder = folder
        self._model = model
        self._ends: list[dict[str, Tensor]] = []
        self._recipe = asdict(recipe)
        self._schedule = schedule
        self._optimizer = torch.optim.AdamW(
            model.parameters(), lr=schedule.peak_rate, betas=(0.9, 0.98), weight_decay=schedule.weight_decay, fused=True
        )
        folder.mkdir(parents=True, exist_ok=True)
        self._resume()

    def train(self, loss_of: Callable[[int], Tensor], *, stop_after: int | None = None) -> None:
        """Go on to the last step, or to ``stop_after``; ``loss_of`` gives the loss of a step."""
        schedule = self._schedule
        last = schedule.all_steps if stop_after is None else min(schedule.all_steps, stop_after)
        with (self._folder / _LOG).open("a", buffering=1) as log:
            while self.step < last:
                began = time.perf_counter()
                for group in self._optimizer.param_groups:
                    group["lr"] = schedule.rate(self.step)
                loss = loss_of(self.step)
                self._optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(self._model.parameters(), schedule.clip)
                self._optimizer.step()
                self.step += 1
                if schedule.ends_cycle(self.step):
                    self._ends.append({name: tensor.clone() for name, tensor in self._model.state_dict().items()})
                line = {"step": self.step, "loss": loss.item(), "seconds": round(time.perf_counter() - began, 3)}
                log.write(json.dumps(line) + "\n")
                if self.step % schedule.checkpoint_every == 0 or self.step == last:
                    self._save()

    def averaged(self) -> dict[str, Tensor]:
        """The mean of the weights at the ends of cycles; before the first has ended, the weights as they are."""
        ends = self._ends or [self._model.state_dict()]
        return {name: sum((end[name] for end in ends), torch.tensor(0.0)) / len(ends) for name in ends[0]}

    def _save(self) -> None:
        state = {
            "recipe": self._recipe, "step": self.step,
            "optimizer": self._optimizer.state_dict(), "model": self._model.state_dict(),
            "ends": self._ends,
        }  # fmt: skip
        partial = self._folder / f"{_STATE}.partial"
        torch.save(state, partial)
        partial.replace(self._folder / _STATE)  # atomic: a kill leaves the old checkpoint or the new one

    def _resume(self) -> None:
        """Load the last checkpoint, if any, and forget log lines after it."""
        log, saved = self._folder / _LOG, self._folder / _STATE
        if not saved.exists():
            log.write_text("")
            return
        state: dict[str, Any] = torch.load(saved, weights_only=True)
        if state["recipe"] != self._recipe:
            changed = sorted(name for name, value in self._recipe.items() if state["recipe"].get(name) != value)
            raise ValueError(
                f"{self._folder} holds a run of another recipe ({', '.join(changed)} differ): give another --out"
            )
        self._model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._ends = state["ends"]
        self.step = int(state["step"])
        kept = log.read_text().splitlines(keepends=True)[: self.step] if log.exists() else []
        log.write_text("".join(kept))
