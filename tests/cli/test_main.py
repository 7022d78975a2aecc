"""The command as a whole: it starts at once, explains itself, and hands on what other modules own."""

import subprocess
import sys

import pytest

from tests.cli.command import run

HEAVY = ("torch", "fastapi", "uvicorn", "httpx", "transformers", "tokenizers")


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "sys.argv = ['toolformer', '--help']\n"
        "from cli.main import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        f"    print('HEAVY', sorted(sys.modules.keys() & {set(HEAVY)!r}))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert "doctor" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("command", ["up", "complete", "call", "tools", "doctor", "fetch"])
async def test_every_command_shows_examples(command: str) -> None:
    status, out, _ = await run(command, "--help")
    assert status == 0
    assert "Examples:" in out
    assert f"toolformer {command}" in out


FORWARDED = [
    ("evaluate", "--suites"),
    ("reproduce", "--out"),
    ("jobs annotate", "--model"),
    ("jobs execute", "--patience"),
    ("jobs filter", "--tau"),
    ("jobs merge", "--run"),
    ("jobs compare", "--out"),
    pytest.param("jobs corpus", "--run", marks=pytest.mark.slow),
    pytest.param("jobs run", "--up", marks=pytest.mark.slow),
    pytest.param("jobs base", "--texts", marks=pytest.mark.slow),
    pytest.param("jobs copying", "--model", marks=pytest.mark.slow),
    pytest.param("jobs demonstrations", "--documents", marks=pytest.mark.slow),
    pytest.param("jobs report", "--run", marks=pytest.mark.slow),
    pytest.param("jobs finetune", "--texts", marks=pytest.mark.slow),
    pytest.param("jobs pretrain", "--corpus", marks=pytest.mark.slow),
    ("index wiki", "--pages"),
]


@pytest.mark.parametrize(("command", "option"), FORWARDED)
async def test_help_of_jobs_looks_like_the_rest(command: str, option: str) -> None:
    status, out, log = await run(*command.split(), "--help", env={"COLUMNS": "120"})
    assert (status, log) == (0, "")
    assert f"Usage: toolformer {command}" in " ".join(out.split())
    assert "Examples:" in out
    assert f"toolformer {command}" in out.partition("Examples:")[2]
    assert option in out
    assert "╭" in out
    assert "python -m" not in out


async def test_lists_of_commands_say_what_each_does() -> None:
    for command in ([], ["jobs"], ["index"]):
        _, out, _ = await run(*command, "--help")
        assert "has the options" not in out
        assert "python -m training_jobs" not in out


async def test_version() -> None:
    status, out, _ = await run("--version")
    assert status == 0
    assert out.split()[0] == "toolformer"
    assert out.split()[1][0].isdigit()


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (["evaluate"], "--gateway"),
        pytest.param(["jobs", "corpus"], "generate", marks=pytest.mark.slow),
        pytest.param(["jobs", "base"], "--texts", marks=pytest.mark.slow),
        pytest.param(["jobs", "demonstrations"], "--documents", marks=pytest.mark.slow),
        pytest.param(["jobs", "pretrain"], "--corpus", marks=pytest.mark.slow),
        (["index", "wiki"], "--pages"),
    ],
)
async def test_jobs_and_indexes_keep_their_own_options(command: list[str], option: str) -> None:
    status, _, log = await run(*command, "--no-such-option")
    assert status == 2
    assert option in log, "the module's own usage"
    assert "error:" in log


@pytest.mark.slow
async def test_a_job_gets_its_arguments() -> None:
    status, _, log = await run("jobs", "demonstrations", "--out", "unused", "--documents", "0")
    assert status == 2
    assert "--documents must be at least 1, not 0" in log
