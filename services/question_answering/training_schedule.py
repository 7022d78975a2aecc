"""How fast the retriever and the reader learn."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
        """Whether the rate has fallen for the last time, or starts again, when ``done`` steps are done."""
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
