"""Gateways and tools are restarted one after the other under 20 streams, and no completion is lost."""

import json
import logging
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.containers.engine import HERE, Stack, docker, inspect

pytestmark = pytest.mark.timeout(3600)
STREAMS = 20
READY_SECONDS = 240


@pytest.fixture
def two_of_each(images: Stack) -> Iterator[Stack]:
    """The stack under another name, with two gateways and two calculators."""
    stack = Stack(f"{images.project}-two", images.port, [*images.files, HERE / "two-of-each.yml"])
    try:
        stack.compose("up", "--no-build", "--wait", "--wait-timeout", "600", seconds=700)
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout", "10")
    assert not stack.left()


def restart(container: str) -> None:
    """Stop as an upgrade does, with the time that a drain may take; then wait until it is ready again."""
    docker("stop", "--time", "140", container, seconds=200)
    assert inspect(container)["State"]["ExitCode"] == 0, "the drain was cut off"
    docker("start", container)
    deadline = time.monotonic() + READY_SECONDS
    while inspect(container)["State"]["Health"]["Status"] != "healthy":
        assert time.monotonic() < deadline, docker("logs", "--tail", "30", container)
        time.sleep(1)


def test_no_completion_is_lost(two_of_each: Stack) -> None:
    script = (HERE / "streams.py").read_text()
    name = f"{two_of_each.project}-clients"
    network = f"{two_of_each.project}_tools"
    words = ["docker", "run", "--rm", "-i", "--name", name, "--network", network, "--entrypoint", "python"]
    clients = subprocess.Popen(
        [*words, "toolformer-gateway", "-c", script, str(STREAMS), "600"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        time.sleep(10)
        for service in ("calculator", "gateway"):
            for container in two_of_each.compose("ps", "-q", service).split():
                restart(container)
        docker("kill", "--signal", "INT", name)
        said, complaints = clients.communicate(timeout=180)
    finally:
        clients.kill()
    assert said, complaints[-2000:]
    counts = json.loads(said)
    logging.getLogger(__name__).info("%s", counts)  # --log-cli-level=INFO shows it
    assert counts["lost"] == counts["found no gateway"] == 0, counts
    assert counts["completed"] > STREAMS, counts
    assert counts["calls without an answer"] == 0, counts
