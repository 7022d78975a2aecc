"""The benchmarks run to their end, small: what they report is there, whatever its size."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def reported(folder: Path, module: str, *arguments: str) -> dict[str, Any]:
    """The report of a benchmark that writes into ``folder``."""
    command = [sys.executable, "-m", f"benchmarks.{module}", "--results", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads((folder / f"{module}.json").read_text())
    assert {"date", "machine", "versions"} < report.keys()
    return report


def test_gptj_gpu_on_a_processor(tmp_path: Path) -> None:
    small = ("--device=cpu", "--dtype=float32", "--shape=small", "--tokens=4", "--streams=3", "--contexts", "64")
    report = reported(tmp_path, "gptj_gpu", *small)
    assert [row["streams"] for row in report["decoding"]] == [1, 3]
    for row in report["decoding"]:
        assert row["tokens a second"] > 0
        assert row["memory allows"] > 0
    (row,) = report["resume"]
    assert row.pop("context") == 64
    assert row.keys() == {"decode step", "resume", "again, one piece", "again, 128 at a time"}
    assert all(milliseconds > 0 for milliseconds in row.values())
    assert report["transformers"]["tokens a second"] > 0
    assert report["steps replayed"] is False


@pytest.mark.parametrize("model", [(), ("--shape", "small", "--price", "2")], ids=["bundled", "random weights"])
def test_annotate_and_filter_beside_the_plain_way(model: tuple[str, ...], tmp_path: Path) -> None:
    sizes = ("--lengths", "16", "--documents", "2", "--plain-documents", "1", "--positions", "2", "--samples", "2")
    report = reported(tmp_path, "annotate_filter", *sizes, "--calls", "2", *model)
    [row] = report["rows"]
    assert row["annotate / plain"] > 0
    assert row["filter / plain"] > 0


def test_finetuning_as_on_a_gpu(tmp_path: Path) -> None:
    report = reported(tmp_path, "finetune", "--shape", "small", "--length", "40", "--batch", "16", "--steps", "2")
    for rates in report["tokens a second"].values():
        assert rates.keys() == {"transformers", "like lengths", "finetune"}
        assert min(rates.values()) > 0
