"""What every benchmark's report says besides its figures, and where it is written."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """The processor, the cores this process may use and how busy they are: other work makes figures worse."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else "unknown",
        "cores": os.cpu_count(),
        "load average over a minute": round(os.getloadavg()[0], 2),
    }


def write_report(name: str, figures: Mapping[str, Any], packages: Sequence[str], folder: Path = RESULTS) -> Path:
    """Write ``name``.json into a folder: the figures, the date, the machine and the packages' versions."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    report = {
        "date": dt.date.today().isoformat(),
        "machine": machine(),
        "versions": {package: version(package) for package in packages},
        **figures,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
    return path


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """p50, p95 and p99 of some durations, in milliseconds."""
    ordered = sorted(seconds)
    return {f"p{share}": round(1_000 * ordered[(len(ordered) - 1) * share // 100], 3) for share in (50, 95, 99)}


def memory_mib(process: int | str, *, peak: bool = False) -> float:
    """Resident memory of a process in MiB, mapped files included, now or its ``peak``; 0 where the system does not
    say."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    name = "VmHWM:" if peak else "VmRSS:"
    return next((round(int(line.split()[1]) / 1_024, 1) for line in lines if line.startswith(name)), 0.0)


def processor_seconds(process: int) -> float:
    """Seconds that a process has computed, all its threads together; 0 where the system does not say.

    What an answer costs a processor hardly depends on what else runs on it, as how long it takes does.
    """
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
