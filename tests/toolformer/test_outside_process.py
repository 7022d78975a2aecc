"""Tools of MCP servers that a command starts: real processes, which are killed, stopped, and do not start."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.toolformer.outside_servers import registry
from tests.toolformer.test_tools import ATLAS, errors_of, load, write
from toolformer.result_cache import MemoryCache
from toolformer.tool_client import RetryPolicy, ToolClient
from toolformer.tool_wire import without_addresses

QUICK = RetryPolicy(max_attempts=2, backoff_s=0.001, failure_threshold=2, cool_down_s=0.1)
SERVER = [sys.executable, str(Path(__file__).with_name("outside_servers.py"))]
ROOT = str(Path(__file__).parents[2])


def client_of(tool: str, argument: str, command: list[str] = SERVER, **changes: Any) -> ToolClient:
    """A client of the tool ``tool``, whose ``argument`` is the input; ``changes`` of the calculator's table."""
    environment = {"PYTHONPATH": ROOT} | changes.pop("environment", {})
    mcp = {"tool": tool, "arguments": {argument: "{input}"}, "command": command, "environment": environment}
    cache = changes.pop("cache", None)
    return ToolClient(registry("", mcp=mcp, **changes), QUICK, cache=cache)


async def output_of(client: ToolClient, input: str) -> str:
    result = await client.call("Calculator", input, timeout=60)
    assert result.output is not None, result
    return result.output


async def test_one_process_answers_all_calls_and_ends_with_the_client() -> None:
    async with client_of("process", "variable") as client:
        assert (await client.ready("Calculator", timeout=60)).ok
        results = await client.call_many("Calculator", ["A", "B", "C"] * 7, timeout=60, concurrency=20)
        [pid] = {int((result.output or "").split()[0]) for result in results}
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_killed_one_is_started_again() -> None:
    async with client_of("process", "variable") as client:
        pids = []
        for _ in range(3):
            pids.append(int((await output_of(client, "A")).split()[0]))
            os.kill(pids[-1], signal.SIGKILL)
        assert len(set(pids)) == 3


async def test_one_that_dies_of_a_call_is_there_for_the_next() -> None:
    async with client_of("stop", "text") as client:
        result = await client.call("Calculator", "SIGKILL", timeout=60)
        assert result.error is not None
        assert (result.error.code, result.attempts) == ("unreachable", 2)
        await asyncio.sleep(0.2)
        assert await output_of(client, "SIGCONT") == "SIGCONT"


async def test_one_that_says_nothing_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolformer.mcp_process.SILENT_S", 0.0)
    async with client_of("stop", "text", timeout_s=1.0) as client:
        assert await output_of(client, "SIGCONT") == "SIGCONT"
        result = await client.call("Calculator", "SIGSTOP", timeout=1.5)
        assert result.error is not None
        assert result.error.code == "timeout"
        assert await output_of(client, "SIGCONT") == "SIGCONT"


async def test_a_deadline_holds_while_it_starts() -> None:
    async with client_of("process", "variable") as client:
        result = await client.call("Calculator", "A", timeout=0.001)
        assert result.error is not None
        assert result.error.code == "timeout"
        assert await output_of(client, "A")


async def test_too_large_an_answer_is_not_taken() -> None:
    async with client_of("talk", "text") as client:
        result = await client.call("Calculator", "a", timeout=60)
        assert result.error is not None
        assert result.error.code == "too_large"


async def test_answers_are_kept() -> None:
    async with client_of("say", "text", cache=MemoryCache()) as client:
        assert (await client.ready("Calculator", timeout=60)).ok
        results = [await client.call("Calculator", "a", timeout=60) for _ in range(2)]
        assert [(result.output, result.cached) for result in results] == [("said a", False), ("said a", True)]


async def test_its_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTSIDE_KEY", "k1")
    monkeypatch.setenv("OTHER", "not passed on")
    async with client_of("process", "variable", environment={"KEY": "a {env:OUTSIDE_KEY}"}) as client:
        assert (await output_of(client, "KEY")).split(maxsplit=1)[1] == "a k1"
        assert (await output_of(client, "OTHER")).split()[1] == "None"
    async with client_of("process", "variable", environment={"KEY": "{env:OUTSIDE_NOT_SET}"}) as client:
        result = await client.call("Calculator", "KEY", timeout=60)
        assert result.error is not None
        assert result.error.code == "unreachable"
        assert "the environment has no value for the variable KEY" in result.error.message


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["/no/such-server"], "its server cannot be started: No such file or directory"),
        (["sleep", "60"], "its server did not answer within 0.5 s"),
        ([sys.executable, "-c", ""], "its server ended before it answered"),
    ],
)
async def test_one_that_does_not_start(command: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolformer.mcp_process.START_S", 60.0 if command[0] == sys.executable else 0.5)
    async with client_of("say", "text", command) as client:
        result = await client.call("Calculator", "a", timeout=60)
        assert result.error is not None
        assert result.error.code == "unreachable"
        assert message in result.error.message
        assert f"at stdio:{Path(command[0]).name} (" in result.error.message
        assert "stdio:" not in without_addresses(result.error.message)
        ready = await client.ready("Calculator", timeout=60)
        assert message in ready.reason


WITHOUT_URL = "".join(line for line in ATLAS.splitlines(keepends=True) if not line.startswith("url"))
TOOL = "mcp = {tool = 'a', arguments = {a = '{input}'}, "


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (WITHOUT_URL + "mcp = {tool = 'a', arguments = {a = '{input}'}}", "url: is missing; url is the base URL"),
        (ATLAS + TOOL + "command = ['a']}", "url: a server that a command starts has no url"),
        (WITHOUT_URL + TOOL + "command = 'a'}", "mcp.command: "),
        (WITHOUT_URL + TOOL + "command = ['']}", "begins with the program's name"),
        (WITHOUT_URL + TOOL + "command = ['a', '{input}']}", "never depends on a call"),
        (WITHOUT_URL + TOOL + "command = ['a'], headers = {Accept = 'b'}}", "belong in environment"),
        (ATLAS + TOOL + "environment = {A = 'b'}}", "environment is for a server that a command starts"),
    ],
)
def test_a_wrong_table_is_explained(table: str, message: str, tmp_path: Path) -> None:
    assert message in errors_of(write(tmp_path, table))


def test_a_command_needs_no_url(tmp_path: Path) -> None:
    tool = load(write(tmp_path, WITHOUT_URL + TOOL + "command = ['/opt/a-server', '-v']}")).get("Atlas")
    assert (tool.url, tool.address, tool.batch) == ("", "stdio:a-server", 1)
