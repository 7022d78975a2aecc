"""``toolformer jobs run STAGE --on docker``: a container of the engine, its exit status, its end by Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import pytest

from tests.containers.engine import ROOT, Stack, engine, inspect

pytestmark = pytest.mark.timeout(3600)


def command(stack: Stack, stage: str, *arguments: str) -> list[str]:
    files = [word for file in stack.files for word in ("--compose", str(file))]
    words = ["jobs", "run", stage, "--on", "docker", "--project", stack.project, *files, *arguments]
    return [sys.executable, "-m", "cli", *words]


def of(stack: Stack, stage: str) -> dict[str, list[str]]:
    return {"label": [f"com.docker.compose.{key}" for key in (f"project={stack.project}", f"service={stage}")]}


def containers_of(stack: Stack, stage: str) -> list[str]:
    return [one.id for one in engine().containers.list(all=True, filters=of(stack, stage), ignore_removed=True)]


def ended(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)


def test_its_log_and_exit_status_are_the_stages(stack: Stack) -> None:
    failed = ended(command(stack, "merge", "--run", "/runs/nothing"))
    assert failed.returncode == 1, failed.stderr
    assert "/runs/nothing/filter/Calculator.jsonl is not there" in failed.stdout + failed.stderr
    assert "merge ended with exit status 1" in failed.stderr
    done = ended(command(stack, "corpus", "generate", "--out", "/runs/of-command", "--documents", "5"))
    assert done.returncode == 0, done.stderr
    assert not containers_of(stack, "merge") + containers_of(stack, "corpus")


def test_ctrl_c_stops_the_container_and_takes_it_away(stack: Stack) -> None:
    words = command(stack, "corpus", "generate", "--out", "/runs/endless", "--documents", "100000000")
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        assert running.stderr is not None
        assert "corpus runs in container" in running.stderr.readline()
        until = time.monotonic() + 120
        while not (found := engine().containers.list(filters=of(stack, "corpus"), ignore_removed=True)):
            assert running.poll() is None, running.stderr.read()
            assert time.monotonic() < until, "no container"
            time.sleep(0.2)
        [container] = [one.id for one in found]
        host = inspect(container)["HostConfig"]
        assert (host["ReadonlyRootfs"], host["CapDrop"], host["Memory"]) == (True, ["ALL"], 6 << 30)
        running.send_signal(signal.SIGINT)
        try:
            _, said = running.communicate(timeout=120)
        finally:
            running.kill()
    assert running.returncode == 130
    assert "corpus was stopped; what it finished is kept" in said
    assert not containers_of(stack, "corpus")
