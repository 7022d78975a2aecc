"""One model's training: seeded steps, a log of losses, checkpoints from which a killed run goes on; batches made ahead
of it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, TypeVar

import torch
from torch import Tensor, nn

from toolformer.model_files.whole import whole

BatchT = TypeVar("BatchT")
_STATE: Final = "state.pt"
_LOG: Final = "loss.jsonl"


class TrainingRun:
    """A model in training in a folder of its own, from the last checkpoint there if there is one.

    Args:
        folder: where ``state.pt`` and ``loss.jsonl`` are.
        model: what is trained, on the device where it stays.
        optimizers: of its weights; all have the same rate.
        recipe: a dataclass with all that the run depends on.
        rate: the learning rate of a step, by its number from 0.
        clip: the largest norm of a gradient.
        length: fields of the recipe that may change while it runs.

    Raises:
        ValueError: the folder holds a run of another recipe.
    """

    def __init__(
        self,
        folder: Path,
        model: nn.Module,
        optimizers: Sequence[torch.optim.Optimizer],
        recipe: Any,
        *,
        rate: Callable[[int], float],
        clip: float,
        length: Collection[str] = (),
    ) -> None:
        self.step = 0
        """Steps done."""
        self.more: dict[str, Any] = {}
        """What else a checkpoint holds: tensors and plain values by name."""
        self.before = self._recipe = asdict(recipe)
        """The recipe that the last checkpoint was made with."""
        self._folder, self._model, self._optimizers = folder, model, optimizers
        self._rate, self._clip = rate, clip
        folder.mkdir(parents=True, exist_ok=True)
        self._resume(length)

    def steps(self, last: int, loss_of: Callable[[int], Tensor]) -> Iterator[float]:
        """Go on until ``last`` steps are done; after each comes its loss. ``loss_of`` computes that of a step."""
        while self.step < last:
            for group in (group for one in self._optimizers for group in one.param_groups):
                group["lr"] = self._rate(self.step)
            loss = loss_of(self.step)
            self._model.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
            for optimizer in self._optimizers:
                optimizer.step()
            self.step += 1
            yield loss.item()

    def log(self, **values: float) -> None:
        """Add a line on the step just done to ``loss.jsonl``."""
        with (self._folder / _LOG).open("a") as log:
            log.write(json.dumps({"step": self.step, **values}) + "\n")

    def save(self) -> None:
        """Write a checkpoint: a kill leaves this one or the one before."""
        state = {"model": self._model.state_dict(), "optimizers": [one.state_dict() for one in self._optimizers]}
        with whole(self._folder / _STATE) as partial:
            torch.save({"recipe": self._recipe, "step": self.step, **state, **self.more}, partial)

    def _resume(self, length: Collection[str]) -> None:
        """Load the last checkpoint, if any, and remove log lines after it."""
        log, saved = self._folder / _LOG, self._folder / _STATE
        if saved.exists():
            device = next(self._model.parameters()).device
            state: dict[str, Any] = torch.load(saved, weights_only=True, map_location=device)
            self.before, self.step = state.pop("recipe"), int(state.pop("step"))
            changed = sorted(name for name, value in self._recipe.items() if self.before.get(name, value) != value)
            if not set(changed) <= set(length):
                raise ValueError(
                    f"{self._folder} holds a run of another recipe ({', '.join(changed)} differ): "
                    "name another folder, or remove it"
                )
            if "optimizers" not in state:
                raise ValueError(f"{saved} was written by an older version: name another folder, or remove it")
            self._model.load_state_dict(state.pop("model"))
            for optimizer, saved_state in zip(self._optimizers, state.pop("optimizers"), strict=True):
                optimizer.load_state_dict(saved_state)
            self.more = state
        kept = log.read_text().splitlines(keepends=True)[: self.step] if log.exists() else []
        log.write_text("".join(kept))


def ahead(batches: Iterator[BatchT], most: int) -> Iterator[BatchT]:
    """The same batches, without end, made in a thread of their own, at most so many before they are asked for."""
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, batches) for _ in range(most))
        while True:
            waiting.append(thread.submit(next, batches))
            yield waiting.popleft().result()
