"""Stages' commands in processes that are forked from one which has imported torch: real ones, that start at once."""

import importlib
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.support.waiting import wait_for

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.training_jobs.runner.preloaded"])


def run(module: str, arguments: Sequence[object], environ: Mapping[str, str], log: Path) -> BaseProcess:
    """Start ``python -m module arguments``; what it says goes to ``log``."""
    process: BaseProcess = _CONTEXT.Process(
        target=_main, args=(module, list(map(str, arguments)), dict(environ), str(log))
    )
    process.start()
    return process


def finish(process: BaseProcess, log: Path, status: int = 0) -> str:
    """Wait for it; it must end with ``status``. What it said."""
    process.join(300)
    said = log.read_text()
    assert process.exitcode == status, said
    return said


def kill_at_random(
    begin: Callable[[], BaseProcess], waits: tuple[float, float], seed: int, begun: Callable[[], bool] = lambda: True
) -> None:
    """Start and SIGKILL ten times, each a random wait, between the two of ``waits`` in seconds, after ``begun`` holds;
    at least two must be alive then.

    Only the process that was started is killed: its workers must end by themselves.
    """
    draw = random.Random(seed)
    hits = 0
    for _ in range(10):
        process = begin()
        wait_for(lambda running=process: begun() or not running.is_alive())  # type: ignore[misc]
        time.sleep(draw.uniform(*waits))
        hits += process.is_alive()
        process.kill()
        process.join(60)
    assert hits >= 2


def _main(module: str, arguments: list[str], environ: dict[str, str], log: str) -> None:
    os.environ.update(environ)
    sys.stderr = sys.stdout = Path(log).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
    found = importlib.import_module(module)
    if hasattr(found, "__path__"):  # a folder: its command
        found = importlib.import_module(f"{module}.__main__")
    found.main(arguments)
