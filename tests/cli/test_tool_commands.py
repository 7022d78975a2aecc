"""``toolformer call`` and ``toolformer tools`` against real services."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.cli.command import run, toolformer


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    """Settings that lead to a running calculator and calendar, which a busy machine may keep waiting."""
    patient = tmp_path / "patient.toml"
    patient.write_text("[Calculator]\ntimeout_s = 60\n\n[Calendar]\ntimeout_s = 60\n")
    async with toolformer("up", "--tools", "calculator,calendar", "--no-gateway") as up:
        urls: dict[str, str] = {}
        while len(urls) < 2:
            found = await up.line_with(r"^(\w+) +\| .* listening on (http://\S+)")
            urls[f"TOOLFORMER_TOOL_{found[1].upper()}_URL"] = found[2]
        await up.line_with("^ready: ", "out")
        yield {**urls, "TOOLFORMER_TOOLS": str(patient), "TOOLFORMER_TOOL_WIKISEARCH_URL": "http://127.0.0.1:1"}
        up.process.terminate()
        assert await up.ended() == 0


async def test_a_call_prints_the_answer_or_why_there_is_none(environment: dict[str, str]) -> None:
    answers = await asyncio.gather(
        run("call", "Calculator", "400 / 1400", env=environment),
        run("call", "Calendar", "--date", "2030-01-31", env=environment),
        run("call", "Calculator", "1 / 0", env=environment),
        run("call", "WikiSearch", "Lima", env=environment),
        run("call", "Abacus", "1", env=environment),
    )
    assert [(status, out) for status, out, _ in answers] == [
        (0, "0.29\n"),
        (0, "Today is Thursday, January 31, 2030.\n"),
        (1, ""),
        (1, ""),
        (1, ""),
    ]
    codes = ["division_by_zero: ", "unreachable: ", "unknown_tool: "]
    for (_, _, log), code in zip(answers[2:], codes, strict=True):
        assert log.startswith(f"toolformer: {code}")

    status, out, _ = await run("tools", env=environment)
    assert status == 0
    rows = {line.split()[0]: line.split() for line in out.splitlines()}
    assert rows["Calculator"][1:4] == [environment["TOOLFORMER_TOOL_CALCULATOR_URL"], "up", "yes"]
    assert rows["Calendar"][2] == "up"
    assert rows["WikiSearch"][2] == "down:"


async def test_a_tool_is_known_by_any_of_its_spellings(environment: dict[str, str]) -> None:
    for name in ("calculator", "CALCULATOR", "Calculator"):
        assert await run("call", name, "400 / 1400", env=environment) == (0, "0.29\n", "")
    status, _, log = await run("call", "Calculater", "1", env=environment)
    assert status == 1
    assert "did you mean 'Calculator'?" in log
    assert "did you mean 'Calendar'?" in (await run("up", "--tools", "Calender", env=environment))[2]
    assert "did you mean 'annotate'?" in (await run("jobs", "run", "anotate", env=environment))[2]


@pytest.mark.parametrize("day", ["2030-13-01", "yesterday"])
async def test_a_day_that_is_none_is_refused_in_plain_words(day: str) -> None:
    status, out, log = await run("call", "Calendar", "--date", day, env={"COLUMNS": "120"})
    assert (status, out) == (2, "")
    assert "--date" in log
    assert f"{day!r} is no day: write year, month and day" in log


@pytest.mark.parametrize("command", [["tools"], ["call", "Calculator", "1"], ["up"]])
async def test_a_wrong_registry_is_reported_with_file_and_remedy(command: list[str]) -> None:
    status, out, log = await run(*command, env={"TOOLFORMER_TOOL_ABACUS_URL": "http://127.0.0.1:1"})
    assert (status, out) == (1, "")
    assert "TOOLFORMER_TOOL_ABACUS_URL: there is no such tool" in log
    assert "Traceback" not in log
