"""The stage ``filter`` in its two halves, as jobs for the runner: ``score`` asks the model for the losses of each call,
``filter`` judges by them and needs no model."""

from __future__ import annotations

import argparse
import contextlib
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from toolformer.tools import Tool, ToolRegistry, UnknownTool
from training_jobs.errors import StageError
from training_jobs.filter.judging import KEEPING, Thresholds, judge
from training_jobs.filter.scorer import Scorer, ScoreSettings
from training_jobs.model_choice import ModelChoice
from training_jobs.records import KEPT, Annotated
from training_jobs.run_folder import RunFolder
from training_jobs.runner.ranks import Shard
from training_jobs.runner.running import Running, run_stages
from training_jobs.runner.work import Lines, Say, Worked, Worker
from training_jobs.settings import add_settings, read_settings, setting

SCORE_CHUNK: Final = 64
JUDGE_CHUNK: Final = 1_024

_OF_TOOL: Final = {"name", "quoted", "max_result_tokens"}
"""The fields of a tool that decide what is scored."""


@dataclass(frozen=True, slots=True)
class ScoreJob:
    """Asks ``model`` for the losses of ``tool``'s executed calls."""

    model: ModelChoice
    tool: Tool
    how: ScoreSettings

    def settings(self) -> dict[str, Any]:
        """See :class:`~training_jobs.runner.work.Job`."""
        of_tool = self.tool.model_dump(mode="json", include=_OF_TOOL)
        return {**self.model.settings(), "tool": of_tool, **asdict(self.how)}

    @contextlib.contextmanager
    def open(self, say: Say) -> Iterator[Worker]:
        """See :class:`~training_jobs.runner.work.Job`."""
        with self.model.opened() as (model, tokenizer):
            try:
                scorer = Scorer(model, tokenizer, ToolRegistry([self.tool]), self.how)
            except ValueError as error:
                raise StageError(f"{self.model.path}: {error} (--no-begin-of-text)") from error

            def work(lines: Lines) -> Worked:
                try:
                    scored = scorer.score([Annotated.from_line(line, where) for where, line in lines])
                except UnknownTool as error:
                    raise StageError(f"{lines[0][0]}: tool: {error}") from error
                calls = sum(candidate.gain is not None for one in scored for candidate in one.candidates)
                return Worked(scored, {"calls": calls})

            yield work


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """Sets the verdicts of ``tool``'s scored calls."""

    tool: str
    thresholds: Thresholds

    def settings(self) -> dict[str, Any]:
        """See :class:`~training_jobs.runner.work.Job`."""
        return {"tool": self.tool, "thresholds": asdict(self.thresholds)}

    @contextlib.contextmanager
    def open(self, say: Say) -> Iterator[Worker]:
        """See :class:`~training_jobs.runner.work.Job`."""
        yield self._work

    def _work(self, lines: Lines) -> Worked:
        judged = [judge(Annotated.from_line(line, where), self.thresholds) for where, line in lines]
        verdicts = Counter(candidate.verdict == KEPT for one in judged for candidate in one.candidates)
        return Worked(judged, {"kept": verdicts[True], "not kept": verdicts[False]})


@dataclass(frozen=True, slots=True)
class FilterSettings:
    """What a call must gain: ``tau_f + cost_weight * cost``. ``tau`` and ``cost``, by tool, are in place of the
    registry's ``tau_f`` and cost; ``tau`` under the name ``""`` for those of all tools."""

    tau: Mapping[str, float] = field(default_factory=dict)
    cost_weight: float = setting(0.0, "lambda: nats for each unit of a call's cost")
    cost: Mapping[str, float] = field(default_factory=dict)

    def of(self, tool: Tool) -> Thresholds:
        """The thresholds of ``tool``."""
        priced = tool.model_copy(update={"cost": self.cost.get(tool.name, tool.cost)})
        tau = self.tau.get(tool.name, self.tau.get(""))
        return Thresholds.of(priced, tau=tau, cost_weight=self.cost_weight)


def add_filter_settings(parser: argparse.ArgumentParser) -> None:
    """Options that say what a call must gain, and how that is measured."""
    group = parser.add_argument_group("what a call must gain")
    group.add_argument(
        "--tau", nargs="+", type=_tau, default=[], metavar="NATS|TOOL=NATS", help="tau_f, in place of the registry's"
    )
    group.add_argument(
        "--cost",
        choices=("registry", "measured"),
        default="registry",
        help="costs from the registry, or from how long the calls of RUN/execute took, the calculator's being 1",
    )
    add_settings(group, FilterSettings)
    add_settings(group, ScoreSettings)


def read_filter_settings(options: argparse.Namespace, registry: ToolRegistry) -> FilterSettings:
    """What `add_filter_settings`'s options say, with the registry's costs.

    Raises:
        UnknownTool: if ``--tau`` names a tool that is not there.
    """
    tau = {name and registry.named(name).name: least for name, least in options.tau}
    return read_settings(FilterSettings, options, tau=tau)


def _tau(text: str) -> tuple[str, float]:
    tool, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"must be a number of nats, or TOOL=number, not {text!r}")
    return tool, value


def score_tools(
    folder: RunFolder,
    tools: Sequence[Tool],
    running: Running,
    model: ModelChoice,
    how: ScoreSettings,
    *,
    chunk_documents: int = SCORE_CHUNK,
) -> bool:
    """Score each tool's executed calls; whether all outputs are whole.

    Raises:
        StageError: if the model cannot be used, or a file is not what it should be.
    """
    jobs = {tool.name: ScoreJob(model, tool, how) for tool in tools}
    return run_stages(folder.stages("execute", "score", jobs, chunk_documents, needs=model.needs), running)


def judge_tools(folder: RunFolder, tools: Sequence[Tool], running: Running, filtering: FilterSettings) -> bool:
    """Judge each tool's scored calls; verdicts of other thresholds are replaced. Whether all outputs are whole.

    Raises:
        NothingKept: if no call is kept.
        StageError: if a file is not what it should be.
    """
    jobs = {tool.name: JudgeJob(tool.name, filtering.of(tool)) for tool in tools}
    running = replace(running, shard=Shard())  # it takes seconds; the rank that ends last does all of it
    return run_stages(folder.stages("score", "filter", jobs, JUDGE_CHUNK, replaceable=True), running, KEEPING)


def measured_costs(folder: RunFolder, tools: Sequence[Tool], unit: str = "Calculator") -> dict[str, float]:
    """What a call of each tool took when it was executed, a call of ``unit`` being 1, as the registry's costs are.

    Raises:
        StageError: if no call of a tool was timed: none was executed, or a cache answered them all.
    """
    seconds = {name: _seconds_per_call(folder, name) for name in {tool.name for tool in tools} | {unit}}
    return {tool.name: round(seconds[tool.name] / seconds[unit], 3) for tool in tools}


def _seconds_per_call(folder: RunFolder, name: str) -> float:
    target = folder.file("execute", name)
    log = target.with_name(f"{target.name}.log.jsonl")
    asked = seconds = 0.0
    if log.is_file():
        for line in log.read_text(encoding="utf-8").splitlines():
            try:
                note = json.loads(line)
            except ValueError:  # a kill cut the line
                continue
            if note.get("asked"):
                asked += note["asked"]
                seconds += note["seconds"]
    if not asked or not seconds:
        raise StageError(
            f"{log}: has no timed call of {name}: execute some without a cache, or use the registry's costs"
        )
    return seconds / asked
