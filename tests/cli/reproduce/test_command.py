"""The command as a process: a step that fails, and a stop that is asked for."""

import asyncio
import json
import signal
from pathlib import Path

import pytest

from tests.cli.command import descendants, gone, run, toolformer
from tests.support.processes import SECONDS


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """A run that would never end."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "config.json").write_text('{"n_positions": 64}')
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / "base" / name).touch()
    more = ["--documents", "3000000", "--setting", "short", "--until", "texts"]
    return ["reproduce", "--base", str(tmp_path / "base"), "--out", str(tmp_path / "run"), *more]


async def test_a_failing_step_is_reported_with_the_end_of_its_log(arguments: list[str], tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "texts").touch()  # where a folder is to be
    status, _, log = await run(*arguments)
    assert status == 1
    lines = log.partition("toolformer: ")[2].splitlines()
    assert lines[0] == f"step texts ended with status 1; the end of {tmp_path}/run/logs/texts.log:"
    assert lines[-2].startswith("FileExistsError: ")
    assert lines[-1] == "Mend what is wrong and give the same command again: what is done stays done."
    assert "Its figures mean nothing." in log


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_stop_ends_the_step_too_and_is_gone_on_with(
    arguments: list[str], tmp_path: Path, number: signal.Signals
) -> None:
    async with toolformer(*arguments) as command:
        await command.line_with(r"^\[1/1\] texts: write the plain texts C")
        async with asyncio.timeout(SECONDS):
            while not (started := descendants(command.process.pid)):  # noqa: ASYNC110 - a process sends no event
                await asyncio.sleep(0.02)
        command.process.send_signal(number)
        assert await command.ended() == 130
        for pid in started:
            await gone(pid)
    assert command.log.splitlines()[-1] == "toolformer: stopped; the same command goes on where it was"
    status, out, _ = await run(*arguments[:-2], "--list")
    assert status == 0
    assert [line.split()[1] for line in out.splitlines() if line.split()[:1] == ["texts"]] == ["begun"]
    begun = json.loads((tmp_path / "run" / "steps" / "texts.json").read_text())
    assert begun["arguments"][0] == "generate"
