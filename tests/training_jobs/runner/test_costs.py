"""What a call must gain, and what it costs."""

import json
from pathlib import Path

import pytest

from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.filter import Thresholds
from training_jobs.filter.job import FilterSettings, measured_costs
from training_jobs.run_folder import RunFolder

REGISTRY = ToolRegistry.load(environ={})
CALCULATOR, QA = REGISTRY.get("Calculator"), REGISTRY.get("QA")


def test_a_call_must_gain_its_threshold_and_lambda_times_its_cost() -> None:
    assert FilterSettings().of(QA).gain == QA.filter_threshold
    assert FilterSettings({"": 0.3, "QA": 0.7}).of(QA).gain == 0.7
    assert FilterSettings({"": 0.3, "QA": 0.7}).of(CALCULATOR).gain == 0.3
    assert FilterSettings({}, 0.1).of(QA) == Thresholds(QA.filter_threshold + 0.1 * QA.cost, QA.input_from_before)
    assert FilterSettings({"": 1.0}, 0.1, {"QA": 30.0}).of(QA).gain == pytest.approx(4.0)


def test_measured_costs_are_seconds_a_call_beside_the_calculators(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)

    def log(tool: str, *notes: dict[str, float]) -> None:
        path = folder.target("execute", tool).with_name(f"{tool}.jsonl.log.jsonl")
        path.write_text("".join(json.dumps(note) + "\n" for note in notes) + '{"asked": 3, "se')  # killed while writing

    log("Calculator", {"asked": 100, "seconds": 0.5}, {"asked": 0, "seconds": 9.0})
    log("QA", {"asked": 10, "seconds": 1.0}, {"asked": 30, "seconds": 3.0})
    assert measured_costs(folder, [CALCULATOR, QA]) == {"Calculator": 1.0, "QA": 20.0}
    log("QA", {"asked": 0, "seconds": 0.01})
    with pytest.raises(StageError, match="has no timed call of QA: execute some without a cache"):
        measured_costs(folder, [QA])
