"""Supervision of components that misbehave, in real processes."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from cli import supervisor as supervisor_module
from cli.child import MAX_LINE, Child
from cli.components import Component, free_port
from cli.console import CommandError
from cli.supervisor import ComponentError, RestartPolicy, Supervisor
from cli.up import up
from tests.cli.command import gone
from tests.support.processes import SECONDS

QUICK = RestartPolicy(limit=2, first_delay_s=0.01, longest_delay_s=0.01)


def component(behaviour: str, *, essential: bool = False, **environment: str) -> Component:
    port = free_port(0, "127.0.0.1")
    environment |= {"BEHAVIOUR": behaviour, "PORT": str(port)}
    return Component(behaviour, "tests.cli.fake_component", "127.0.0.1", port, "PORT", environment, essential=essential)


class Log:
    """Takes lines and lets a test wait for one."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, name: str, line: str) -> None:
        self.lines.append(f"{name}: {line}")
        self._more.set()

    async def line_with(self, text: str) -> str:
        """The first line that holds ``text``, once it is there."""
        async with asyncio.timeout(SECONDS):
            while not (found := [line for line in self.lines if text in line]):
                self._more.clear()
                await self._more.wait()
        return found[0]


async def fall_too_often(log: Log, folder: Path, *, essential: bool) -> None:
    one = component("works_once", essential=essential, BEFORE=str(folder / "before"))
    async with asyncio.timeout(SECONDS), Supervisor([one], log, QUICK) as supervisor:
        await supervisor.all_ready()
        pid = int((await log.line_with("started as process")).split()[-1])
        os.kill(pid, signal.SIGKILL)
        await supervisor.finished()


async def test_a_component_that_keeps_falling_is_given_up(tmp_path: Path) -> None:
    log = Log()
    await fall_too_often(log, tmp_path, essential=False)
    falls = [line for line in log.lines if "starting it again" in line]
    assert ["(1 of 2)" in falls[0], "(2 of 2)" in falls[1], len(falls)] == [True, True, 2]
    assert "exited with status 1, 3 times in a row: giving up. Its last lines:\nnever again" in log.lines[-1]


async def test_an_essential_component_takes_all_with_it(tmp_path: Path) -> None:
    with pytest.raises(ComponentError, match="giving up"):
        await fall_too_often(Log(), tmp_path, essential=True)


def test_pauses_between_starts_grow_to_a_limit() -> None:
    policy = RestartPolicy(first_delay_s=0.5, longest_delay_s=3)
    assert [policy.delay(failure) for failure in range(1, 6)] == [0.5, 1, 2, 3, 3]


async def test_why_a_component_is_not_ready_is_logged_once() -> None:
    log = Log()
    async with Supervisor([component("loads")], log) as supervisor:
        await log.line_with("asked for the third time")
        assert supervisor.waiting_for() == {"loads": "the index is being built"}
    assert log.lines.count("loads: not ready yet: the index is being built") == 1


async def test_not_being_ready_in_time_is_an_error_with_the_reasons() -> None:
    loading = component("loads")
    reasons = r"not ready within 0\.01 s \(--wait\):\n  loads: it has not answered yet"
    with pytest.raises(CommandError, match=reasons):
        await up([loading], address=loading.url, sample=False, wait_seconds=0.01)


async def test_an_answer_outside_the_contract_is_no_readiness() -> None:
    log = Log()
    async with Supervisor([component("speaks_otherwise")], log) as supervisor:
        await log.line_with("not ready yet: it answered with HTTP 503")
        assert supervisor.waiting_for() == {"speaks_otherwise": "it answered with HTTP 503"}


async def test_being_stopped_before_ready_is_no_success() -> None:
    log_read, stopped = component("loads"), asyncio.get_running_loop()
    stopped.call_soon(os.kill, os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(SECONDS):
        status = await up([log_read], address=log_read.url, sample=False, wait_seconds=SECONDS)
    assert status == 128 + signal.SIGTERM


async def test_a_component_deaf_to_sigterm_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor_module, "GRACE_SECONDS", 0.1)
    log = Log()
    async with asyncio.timeout(SECONDS), Supervisor([component("deaf")], log) as supervisor:
        await supervisor.all_ready()
        pid = int((await log.line_with("started as process")).split()[-1])
    await gone(pid)
    assert log.lines[-2:] == ["deaf: did not stop within 0.1 s: killing it", "deaf: deaf was killed by SIGKILL"]


async def test_output_is_read_line_by_line_whatever_it_is() -> None:
    lines: list[str] = []
    child = await Child.start(component("babbles"), lines.append)
    assert await child.ended() == "exited with status 3"
    assert lines[:2] == ["grüße", "\N{REPLACEMENT CHARACTER}"]
    assert "".join(lines[2:-2]) == "x" * 40_000
    assert max(map(len, lines)) <= MAX_LINE
    assert lines[-2:] == ["", "no line end"]
    assert child.last_lines.endswith("\n\nno line end")


async def test_a_component_cannot_read_its_tether() -> None:
    lines: list[str] = []
    child = await Child.start(component("reads"), lines.append)
    assert await child.ended() == "exited with status 1"
    assert lines == ["read '' with []"]


async def test_components_that_want_one_port_are_told_apart() -> None:
    one = component("loads")
    other = Component("other", one.module, one.host, one.port, "OTHER_PORT")
    with pytest.raises(CommandError, match=f"other and loads both want port {one.port}: choose another .* OTHER_PORT"):
        await up([one, other], address=one.url, sample=False, wait_seconds=1)


async def test_a_component_that_hangs_is_started_again() -> None:
    log, looking = Log(), RestartPolicy(first_delay_s=0.01, look_every_s=0.2, look_deadline_s=2, failed_looks=2)
    async with asyncio.timeout(SECONDS), Supervisor([component("serves")], log, looking) as supervisor:
        await supervisor.all_ready()
        pid = int((await log.line_with("started as process")).split()[-1])
        os.kill(pid, signal.SIGSTOP)
        await log.line_with("serves did not answer GET /health 2 times in a row: ending it")
        await log.line_with("starting it again")
        log.lines.clear()
        assert int((await log.line_with("started as process")).split()[-1]) != pid
        await log.line_with("serves is ready")
