"""Docker as the tests use it: its client for questions; every command with a deadline, its words in the failure."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from docker import DockerClient

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent


_OUTSIDE: Final = re.compile(
    r"Temporary failure in name resolution|Name or service not known|[Cc]ould not resolve|i/o timeout|"
    r"[Cc]onnection (?:reset|refused|timed out)|ReadTimeoutError|NewConnectionError|TLS handshake timeout|"
    r"failed to resolve source metadata|\b50[234] (?:Bad|Service|Gateway)|no space left on device"
)


def not_ours(words: str) -> str | None:
    """The line of a failed build's ``words`` that says that the network or the disk failed and not the project."""
    return next((line.strip() for line in words.splitlines() if _OUTSIDE.search(line)), None)


@cache
def missing() -> str | None:
    """Why no container can run here; ``None`` where one can."""
    if shutil.which("docker") is None:
        return "docker is not installed"
    # By the command: the client leaves an open socket behind where nobody answers.
    if subprocess.run(["docker", "version"], capture_output=True, timeout=60, check=False).returncode:
        return "no Docker engine answers"
    done = subprocess.run(["docker", "compose", "version"], capture_output=True, text=True, timeout=30, check=False)
    return f"docker has no compose ({done.stderr.strip().splitlines()[-1:]})" if done.returncode else None


@cache
def engine() -> DockerClient:
    """The engine of ``DOCKER_HOST``.

    Raises:
        DockerException: none answers.
    """
    return DockerClient.from_env(timeout=120, version="auto")


def docker(*words: str, seconds: float = 120, given: str | None = None) -> str:
    """What ``docker WORDS`` prints.

    Raises:
        AssertionError: it failed; with what it said.
    """
    done = _run(["docker", *words], seconds, given)
    assert done.returncode == 0, f"docker {' '.join(words)[:200]}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout.strip()


def fails(*words: str, seconds: float = 120) -> bool:
    """Whether ``docker WORDS`` fails."""
    return _run(["docker", *words], seconds, None).returncode != 0


def inspect(container: str) -> dict[str, Any]:
    """What the engine knows of a container."""
    found: dict[str, Any] = engine().api.inspect_container(container)
    return found


def python_in(container: str, code: str, seconds: float = 60) -> str:
    """What ``code`` prints, run by the container's own Python."""
    return docker("exec", "-i", container, "python", "-", given=code, seconds=seconds)


@dataclass(frozen=True)
class Stack:
    """The compose project under a name of its own, on a port of its own."""

    project: str
    port: int
    files: Sequence[Path]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The gateway's address."""
        return f"http://127.0.0.1:{self.port}"

    def compose(self, *words: str, seconds: float = 300, given: str | None = None) -> str:
        """What ``docker compose WORDS`` prints."""
        named = [word for file in self.files for word in ("-f", str(file))]
        command = ["docker", "compose", "-p", self.project, "--project-directory", str(ROOT), *named, *words]
        environment = {**os.environ, "GATEWAY_PORT": str(self.port), **self.environment}
        done = _run(command, seconds, given, environment)
        assert done.returncode == 0, f"compose {' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-6000:]}"
        return done.stdout.strip()

    def container(self, service: str) -> str:
        """The id of a service's only container."""
        [found] = self.compose("ps", "-q", service).split()
        return found

    def left(self) -> list[str]:
        """What of the project the engine still has."""
        chosen = {"label": f"com.docker.compose.project={self.project}"}
        found = (
            engine().containers.list(all=True, filters=chosen, ignore_removed=True),
            engine().networks.list(filters=chosen),
            engine().volumes.list(filters=chosen),
        )
        return [one.id for kind in found for one in kind]


def _run(
    command: Sequence[str], seconds: float, given: str | None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, input=given, timeout=seconds, check=False, env=environment
    )
