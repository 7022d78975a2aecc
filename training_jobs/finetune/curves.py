"""What is seen of a run: lines on standard error, ``curve.jsonl``, ``curves.svg``; and when it ends early."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from toolformer.model_files.whole import whole
from training_jobs.runner.parts import write_whole

CURVE_FILE: Final = "curve.jsonl"
PLOT_FILE: Final = "curves.svg"
PERPLEXITY: Final = "eval_perplexity"
_LINE_SECONDS: Final = 10.0

Line = Mapping[str, Any]
"""An entry of the Trainer's ``log_history``."""


class StepClock(TrainerCallback):  # type: ignore[misc]
    """How fast the last step was; ``tokens`` are those of each step, padding not counted."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self._began = 0.0
        self.tokens_per_second = 0.0

    def on_step_begin(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:
        self._began = time.perf_counter()

    def on_step_end(self, args: Any, state: TrainerState, control: Any, **_: Any) -> None:
        seconds = time.perf_counter() - self._began
        self.tokens_per_second = self._tokens[state.global_step - 1] / max(seconds, 1e-9)


class SaveWhatIsMeasured(TrainerCallback):  # type: ignore[misc]
    """Saves at each measure of perplexity, so that the best one can be kept; ends a run after ``patience`` measures
    without a better one."""

    def __init__(self, patience: int | None) -> None:
        self._patience = patience

    def on_step_end(self, args: Any, state: Any, control: TrainerControl, **_: Any) -> None:
        control.should_save = control.should_save or control.should_evaluate

    def on_evaluate(self, args: Any, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        if stopped(state.log_history, self._patience):
            control.should_training_stop = True


def stopped(history: Sequence[Line], patience: int | None) -> bool:
    """Whether the last ``patience`` measures of perplexity in ``history`` are none of them the best so far (the one
    before the first step aside: finetuning may well cost some). It depends on the history alone, so a run that goes on
    knows it too."""
    measured = [line[PERPLEXITY] for line in history if PERPLEXITY in line and line["step"] > 0]
    if patience is None or len(measured) <= patience:
        return False
    return bool(min(measured[:-patience]) <= min(measured[-patience:]))


class CurveFiles(TrainerCallback):  # type: ignore[misc]
    """Writes ``curve.jsonl`` line by line, the plot at each measure, and says where the run is. The curve of a run that
    goes on begins with what its checkpoint knows."""

    def __init__(self, out: Path, steps: int, console: Console) -> None:
        self._out, self._steps, self._console = out, steps, console
        self._said = 0.0
        self._first: tuple[float, int] | None = None

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            lines = "".join(map(_as_json, state.log_history))
            write_whole(self._out / CURVE_FILE, lines.encode())

    def on_log(self, args: TrainingArguments, state: TrainerState, control: Any, logs: Line, **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        line = state.log_history[-1]
        with (self._out / CURVE_FILE).open("a", encoding="utf-8") as file:
            file.write(_as_json(line))
        if PERPLEXITY in line:
            plot(state.log_history, self._out / PLOT_FILE)
            self._say(f"step {state.global_step:,}: perplexity of held-out texts {line[PERPLEXITY]:.3f}")
        elif "loss" in line and time.monotonic() - self._said >= _LINE_SECONDS:
            left = self._minutes_left(state.global_step)
            self._say(
                f"step {state.global_step:,} of {self._steps:,}: loss {line['loss']:.4f}, "
                f"{line['tokens_per_second']:,} tokens/s" + (f", {left:.0f} min left" if left else "")
            )

    def _minutes_left(self, step: int) -> float:
        now = time.monotonic()
        if self._first is None:
            self._first = now, step
        began, first = self._first
        return (now - began) / max(1, step - first) * (self._steps - step) / 60

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def plot(history: Sequence[Line], path: Path) -> None:
    """Loss and perplexity by step, as SVG."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasSVG(figure)
    left, right = figure.subplots(1, 2)
    trained = [(line["step"], line["loss"]) for line in history if "loss" in line]
    measured = [(line["step"], line[PERPLEXITY]) for line in history if PERPLEXITY in line]
    left.plot(*_columns(trained), linewidth=1)
    right.plot(*_columns(measured), marker="o")
    left.set(title="loss of the texts", xlabel="step", ylabel="nats a token")
    right.set(title="perplexity of held-out texts", xlabel="step")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    with whole(path) as partial:
        figure.savefig(partial, metadata={"Date": None}, format="svg")


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _as_json(line: Line) -> str:
    return json.dumps(dict(line)) + "\n"
