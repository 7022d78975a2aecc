"""A stage's container from start to end, with a stand-in of Docker's client; tests/containers have the engine."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from requests.exceptions import ConnectionError as EngineConnectionError

import docker
from cli.console import CommandError
from cli.stage_run import command, on_docker
from tests.cli.stage_run.test_on_docker import CONFIG

LINES = [f"2026-11-21T16:00:{n:02d}.5Z line {n}" for n in range(9)]


class Container:
    """Writes `LINES`, and ends with ``status``; ``trouble`` is called before each look at it."""

    name, short_id = "toolformer-merge-run-1", "abc"

    def __init__(self, status: int = 0, break_after: int = 99, oom: bool = False) -> None:
        self.break_after = break_after
        self.trouble: Callable[[], None] = lambda: None
        self.attrs: dict[str, Any] = {
            "State": {"Running": True, "ExitCode": status, "OOMKilled": oom},
            "HostConfig": {"Memory": 64 << 20},
        }
        self.calls: list[str] = []
        self.sinces: list[dt.datetime | None] = []

    def start(self) -> None: ...

    def reload(self) -> None:
        self.trouble()

    def logs(self, *, since: dt.datetime | None = None, **_: bool) -> Iterator[bytes]:
        self.sinces.append(since)
        self.trouble()
        for number, line in enumerate(LINES):
            if number == self.break_after:
                self.break_after = 99
                yield line[:20].encode()
                raise EngineConnectionError("read timed out")
            if since is None or dt.datetime.fromisoformat(line.split()[0]) >= since:
                yield f"{line}\n".encode()
        self.attrs["State"]["Running"] = False

    def stop(self, timeout: int) -> None:
        self.calls.append("stop")

    def kill(self) -> None:
        self.calls.append("kill")

    def remove(self, force: bool) -> None:
        self.calls.append("remove")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Container], int]:
    """Runs merge in a container; the engine has all that it needs."""
    program, said = tmp_path / "docker", tmp_path / "config.json"
    said.write_text(json.dumps(CONFIG))
    program.write_text(f"#!/bin/sh\ncat {said}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    monkeypatch.setattr(on_docker, "AGAIN_SECONDS", 0)
    there = SimpleNamespace(get=lambda name: name)

    def start(container: Container) -> int:
        containers = SimpleNamespace(create=lambda **_: container)
        client = SimpleNamespace(images=there, networks=there, volumes=there, containers=containers, close=lambda: None)
        monkeypatch.setattr(docker, "DockerClient", lambda **_: client)
        return command.main(["merge", "--on", "docker"])

    return start


def test_a_log_that_breaks_is_taken_up_where_it_was(
    run: Callable[[Container], int], capsys: pytest.CaptureFixture[str]
) -> None:
    container = Container(status=3, break_after=6)
    assert run(container) == 3
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"line {n}" for n in range(9)]
    assert "merge ended with exit status 3" in shown.err
    assert container.sinces[:2] == [None, dt.datetime(2026, 11, 21, 16, 0, 3, tzinfo=dt.UTC)]
    assert container.calls == ["remove"]


def test_memory_that_does_not_suffice_is_told(
    run: Callable[[Container], int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Container(status=137, oom=True)) == 137
    assert "merge went over its 64 MiB of memory" in capsys.readouterr().err


def test_an_engine_that_is_lost_keeps_the_container(run: Callable[[Container], int]) -> None:
    container = Container()

    def lost() -> None:
        raise EngineConnectionError("connection refused")

    container.trouble = lost
    with pytest.raises(CommandError, match=r"engine was lost \(connection refused\): the container goes on"):
        run(container)
    assert container.calls == []


def test_a_container_that_somebody_removed_is_told(run: Callable[[Container], int]) -> None:
    container = Container()

    def gone() -> None:
        raise docker.errors.NotFound("no such container")

    container.trouble = gone
    with pytest.raises(CommandError, match="toolformer-merge-run-1 was removed by somebody else"):
        run(container)


def test_ctrl_c_stops_it_and_twice_kills_it(
    run: Callable[[Container], int], capsys: pytest.CaptureFixture[str]
) -> None:
    for seen, calls in ((1, ["stop", "remove"]), (2, ["stop", "kill", "remove"])):
        container = Container()
        pressed = iter([True, False])

        def press(pressed: Iterator[bool] = pressed) -> None:
            if next(pressed, False):
                raise KeyboardInterrupt

        def stop(timeout: int, container: Container = container) -> None:
            container.calls.append("stop")
            raise KeyboardInterrupt

        container.trouble = press
        if seen == 2:
            container.stop = stop  # type: ignore[method-assign]
        assert run(container) == 130
        assert container.calls == calls
        shown = capsys.readouterr()
        assert "merge was stopped; what it finished is kept" in shown.err
        assert shown.out.splitlines()[-1] == "line 8"  # what it said while it ended


def test_nobody_who_reads_ends_it(run: Callable[[Container], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `| head`."""

    def closed(text: str) -> str:
        raise BrokenPipeError

    monkeypatch.setattr(on_docker, "printable", closed)
    container = Container()
    with pytest.raises(BrokenPipeError):
        run(container)
    assert container.calls == ["remove"]
