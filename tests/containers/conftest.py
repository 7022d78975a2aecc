"""A stack that comes up from nothing and leaves nothing."""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.containers.engine import HERE, ROOT, Stack, docker, missing, not_ours

BUILD_SECONDS = 2400
UP_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder need an engine and take their time."""
    for item in items:
        if Path(item.path).is_relative_to(HERE):
            item.add_marker(pytest.mark.containers)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def engine() -> None:
    if reason := missing():
        pytest.skip(reason)


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """The compose file, and stand-ins for images that cannot be pulled here."""
    image = "redis:7.2.11-alpine"
    try:
        had = subprocess.run(["docker", "pull", "-q", image], capture_output=True, timeout=120, check=False).returncode
    except subprocess.TimeoutExpired:
        had = 1
    if had == 0:
        return [ROOT / "docker-compose.yml"]
    standing_in = HERE / "stand-ins.yml"
    return [ROOT / "docker-compose.yml", standing_in]


@pytest.fixture(scope="session")
def images(engine: None, files: list[Path]) -> Stack:
    """Every image, built one after the other: each wants all cores and most of the memory.

    ``CONTAINER_TESTS_BUILD=no`` takes the images that are there.
    """
    stack = Stack(f"toolformer-test-{os.getpid()}", _free_port(), files)
    if os.environ.get("CONTAINER_TESTS_BUILD") == "no":
        return stack
    for service in [*stack.compose("config", "--services").split(), "evaluate"]:
        try:
            stack.compose("--profile", "jobs", "build", "-q", service, seconds=BUILD_SECONDS)
        except AssertionError as error:
            if why := not_ours(str(error)):
                pytest.skip(f"{service} could not be built here: {why[:200]}")
            raise
    return stack


@pytest.fixture(scope="session")
def stack(images: Stack) -> Iterator[Stack]:
    """The default profile, all of it healthy; afterwards nothing is left of it."""
    assert not images.left()
    try:
        try:
            images.compose("up", "--no-build", "--wait", "--wait-timeout", str(UP_SECONDS), seconds=UP_SECONDS + 60)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{images.compose('logs', '--tail', '30')}") from error
        yield images
    finally:
        images.compose("--profile", "jobs", "down", "--volumes", "--timeout", "10")
    assert not images.left(), docker("ps", "-a")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
