"""``toolformer up`` with real tool services: readiness, stopping, restarts, and what it refuses to start."""

import asyncio
import io
import os
import re
import signal
import socket
from collections.abc import Iterator

import httpx
import pytest
from rich.console import Console

from cli.components import tools_elsewhere
from cli.up import LogPrinter, Reachable
from tests.cli.command import gone, is_listening, kill, run, toolformer
from tests.support.processes import SECONDS, Command
from toolformer.tools import ToolRegistry

BOTH = ("up", "--tools", "calculator,Calendar", "--no-gateway")


async def started(command: Command) -> tuple[dict[str, int], dict[str, int]]:
    """Process ids and ports of calculator and calendar, once all is ready."""
    pids, ports = dict[str, int](), dict[str, int]()
    while not {"calculator", "calendar"} <= pids.keys() & ports.keys():
        line = await command.line_with(r"^(\w+) +\| (?:started as process (\d+)|.* listening on http://[\d.]+:(\d+))")
        name, pid, port = line.groups()
        if pid:
            pids[name] = int(pid)
        else:
            ports[name] = int(port)
    assert await command.line_with(r"^ready: http://127\.0\.0\.1:\d+\n$", "out")
    return pids, ports


@pytest.fixture
def hang_ups() -> Iterator[None]:
    """A lost terminal ends processes, also where the tests run under ``nohup``, which has it ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("hang_ups")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_stops_every_process(number: signal.Signals) -> None:
    async with toolformer(*BOTH) as command:
        pids, ports = await started(command)
        assert all(is_listening(port) for port in ports.values())
        # A terminal's Ctrl-C goes to the foreground process group: the services must not hear it themselves.
        assert all(os.getpgid(pid) == os.getsid(pid) == pid for pid in pids.values())
        command.process.send_signal(number)
        assert await command.ended() == 0
        for pid in pids.values():
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        assert not any(is_listening(port) for port in ports.values())
        assert command.log.count("stopped") == 2, "each service drained"
        assert command.out.count("ready:") == 1
        assert "\033" not in command.log, "no colours without a terminal"


async def test_a_killed_service_is_started_again_and_the_others_never_notice() -> None:
    async with toolformer(*BOTH) as command:
        pids, ports = await started(command)
        kill(pids["calculator"])
        await command.line_with(r"^calculator \| calculator was killed by SIGKILL; starting it again in")
        again = int((await command.line_with(r"^calculator \| started as process (\d+)"))[1])
        await command.line_with(r"^calculator \| calculator is ready")
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            answer = await client.post(f"http://127.0.0.1:{ports['calculator']}/call", json={"input": "24 * 17"})
        assert answer.json()["output"] == "408"
        os.kill(pids["calendar"], 0)  # raises if it is gone
        command.process.send_signal(signal.SIGTERM)
        assert await command.ended() == 0
        assert not re.search(r"calendar +\| started", command.log.partition("ready:")[2])
        await gone(again)


async def test_services_die_with_a_parent_that_is_killed() -> None:
    async with toolformer(*BOTH) as command:
        pids, ports = await started(command)
        command.process.kill()
        await asyncio.gather(*map(gone, pids.values()))
        assert not any(is_listening(port) for port in ports.values())


async def test_a_second_signal_stops_at_once() -> None:
    async with toolformer("up", "--tools", "calculator", "--no-gateway") as command:
        pid = int((await command.line_with(r"^calculator \| started as process (\d+)"))[1])
        await command.line_with(r"^ready:", "out")
        kill(pid, signal.SIGSTOP)  # It cannot hear a request to stop.
        command.process.send_signal(signal.SIGINT)
        await command.line_with("press Ctrl-C again")
        command.process.send_signal(signal.SIGINT)
        assert await command.ended() == 0
        await gone(pid)


async def test_a_port_in_use_is_reported_before_anything_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = {"calendar": one.getsockname()[1], "gateway": other.getsockname()[1]}
        env = {"TOOLFORMER_CALENDAR_PORT": str(ports["calendar"])}
        status, out, log = await run("up", "--tools", "calculator,Calendar", "--port", str(ports["gateway"]), env=env)
    assert (status, out) == (1, "")
    remedies = {"calendar": "TOOLFORMER_CALENDAR_PORT", "gateway": "--port or TOOLFORMER_GATEWAY_PORT"}
    for name, port in ports.items():
        assert f"{name} needs port {port} on 127.0.0.1, but address already in use" in log
        assert f"choose another port with {remedies[name]}" in log
    assert "started" not in log


async def test_a_service_that_dies_at_start_is_reported_with_its_last_lines() -> None:
    status, out, log = await run(*BOTH, env={"TOOLFORMER_CALENDAR_TIMEZONE": "Nowhere/At_all"})
    assert (status, out) == (1, "")
    error = log.partition("toolformer: calendar exited with status 2 before it was ready")[2]
    assert "TOOLFORMER_CALENDAR_TIMEZONE" in error
    assert "Nowhere/At_all" in error


@pytest.mark.parametrize(
    ("arguments", "env", "error"),
    [
        (["--tools", "abacus"], {}, "there is no service of a tool 'abacus'; use some of: Calculator, Calendar"),
        (["--tools", "", "--no-gateway"], {}, "there is nothing to start"),
        (["--sample", "--no-gateway"], {}, "--sample needs the gateway"),
        ([], {"TOOLFORMER_CALCULATOR_PORT": "http"}, "TOOLFORMER_CALCULATOR_PORT must be a port from 0 to 65535"),
        ([], {"TOOLFORMER_TOOLS": "/nowhere/tools.toml"}, "/nowhere/tools.toml: cannot be read"),
    ],
)
async def test_what_cannot_be_started_is_refused_by_name(arguments: list[str], env: dict[str, str], error: str) -> None:
    status, out, log = await run("up", *arguments, env=env)
    assert (status, out) == (1, "")
    assert error in log
    assert "Traceback" not in log


def test_the_log_waits_while_a_text_is_streamed() -> None:
    console = Console(file=io.StringIO(), width=40)
    log = LogPrinter(["calculator", "gateway"], console)
    assert isinstance(console.file, io.StringIO)
    with log.held():
        log("gateway", "first")
        log("calculator", "second\nthird")
        assert console.file.getvalue() == ""
    log("gateway", "x" * 60)
    expected = ["gateway    | first", "calculator | second", "calculator | third", f"gateway    | {'x' * 60}"]
    assert console.file.getvalue().splitlines() == expected


async def test_ready_is_not_said_while_a_tool_that_runs_elsewhere_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    log, reachable = list[str](), Reachable({"Calculator": url}, lambda name, line: log.append(f"{name}: {line}"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await reachable.all()
    remedy = "start it there, or correct TOOLFORMER_TOOL_CALCULATOR_URL or the file of TOOLFORMER_TOOLS"
    assert reachable.missing["Calculator"].startswith(f"cannot be reached at {url} (")
    assert reachable.missing["Calculator"].endswith(remedy)
    assert log == [f"up: Calculator {reachable.missing['Calculator']}"]
    status, out, lines = await run(
        "up", "--tools", "calendar", "--port", "0", "--wait", "15", env={"TOOLFORMER_TOOL_QA_URL": url}
    )
    assert status == 1
    assert "ready:" not in out
    assert f"QA: cannot be reached at {url} (" in lines
    assert "TOOLFORMER_TOOL_QA_URL" in lines


def test_tools_that_were_left_out_on_purpose_are_not_waited_for() -> None:
    registry = ToolRegistry.load(environ={"TOOLFORMER_TOOL_QA_URL": "http://elsewhere.example"})
    assert tools_elsewhere(registry, []) == {"QA": "http://elsewhere.example"}
