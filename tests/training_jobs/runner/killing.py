"""Running a stage as a process of its own, and killing it at random moments."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence


def start(module: str, *arguments: object, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """``python -m module arguments``, in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        env={**os.environ, **(environ or {})},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for it; what it said on standard error. It must end well."""
    _, said = process.communicate(timeout=250)
    assert process.returncode == 0, said
    return said


def kill_at_random(
    begin: Callable[[], subprocess.Popen[str]], begun: Callable[[], bool], times: int, waits: Sequence[float], seed: int
) -> int:
    """Start and SIGKILL ``times`` times, each a random wait after ``begun`` holds; how many of them hit a live one.

    Only the process that was started is killed: its workers must end by themselves.
    """
    draw = random.Random(seed)
    hits = 0
    for _ in range(times):
        process = begin()
        wait_for(lambda running=process: begun() or running.poll() is not None)  # type: ignore[misc]
        time.sleep(draw.uniform(*waits))
        hits += process.poll() is None
        process.kill()
        process.communicate(timeout=250)
    return hits


def wait_for(holds: Callable[[], bool], seconds: float = 250.0) -> None:
    """Return once ``holds``."""
    ends = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < ends, "it does not come to hold"
        time.sleep(0.005)
