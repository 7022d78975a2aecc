"""Stages' commands in processes that are forked from one which has imported torch: real ones, that start at once."""

import importlib
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.training_jobs.runner.preloaded"])


def run(module: str, arguments: list[str], environ: Mapping[str, str], log: Path) -> BaseProcess:
    """Start ``python -m module arguments``; what it says on standard error goes to ``log``."""
    process: BaseProcess = _CONTEXT.Process(target=_main, args=(module, arguments, dict(environ), str(log)))
    process.start()
    return process


def finish(process: BaseProcess, log: Path) -> None:
    """Wait for it; it must end well."""
    process.join(300)
    assert process.exitcode == 0, log.read_text()


def kill_at_random(begin: Callable[[], BaseProcess], times: int, longest: float, seed: int) -> int:
    """Start and SIGKILL so many times, each after up to ``longest`` seconds; how many were alive then."""
    draw = random.Random(seed)
    hits = 0
    for _ in range(times):
        process = begin()
        time.sleep(draw.uniform(0, longest))
        hits += process.is_alive()
        process.kill()
        process.join(60)
    return hits


def _main(module: str, arguments: list[str], environ: dict[str, str], log: str) -> None:
    os.environ.update(environ)
    sys.stderr = sys.stdout = Path(log).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115
    found = importlib.import_module(module)
    if hasattr(found, "__path__"):  # a folder: its command
        found = importlib.import_module(f"{module}.__main__")
    found.main(arguments)
