"""The command as a whole: it starts at once, explains itself, and hands on what other modules own."""

import subprocess
import sys

import pytest

from cli.main import main

HEAVY = ("torch", "fastapi", "uvicorn", "httpx", "transformers", "tokenizers")
FORWARDED = {
    "evaluate": "--suites", "reproduce": "--out", "index wiki": "--pages", "jobs annotate": "--model",
    "jobs execute": "--patience", "jobs filter": "--tau", "jobs merge": "--run", "jobs compare": "--out",
    "jobs corpus": "generate|select", "jobs run": "--up", "jobs base": "--texts", "jobs copying": "--texts",
    "jobs demonstrations": "--documents", "jobs report": "--run", "jobs finetune": "--texts",
    "jobs pretrain": "--corpus",
}  # fmt: skip
"""Commands whose options belong to another module, and one of these."""


class Toolformer:
    """The command in this process, where what its modules import is there already."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch
        monkeypatch.setenv("COLUMNS", "120")

    def __call__(self, words: str) -> tuple[object, str, str]:
        """Exit status, standard output and standard error."""
        self._monkeypatch.setattr(sys, "argv", ["toolformer", *words.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, *self._capsys.readouterr()


@pytest.fixture
def toolformer(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Toolformer:
    return Toolformer(capsys, monkeypatch)


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
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=250, check=True)
    assert "doctor" in done.stdout
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("command", ["up", "complete", "call", "tools", "new-tool", "doctor", "fetch", *FORWARDED])
def test_every_command_shows_examples_and_looks_like_the_rest(toolformer: Toolformer, command: str) -> None:
    status, out, log = toolformer(f"{command} --help")
    assert (status, log) == (0, "")
    assert "╭" in out
    assert f"toolformer {command}" in out.partition("Examples:")[2]
    if command in FORWARDED:
        assert f"Usage: toolformer {command}" in " ".join(out.split())
        assert FORWARDED[command] in out
        assert "python -m" not in out


def test_lists_of_commands_say_what_each_does(toolformer: Toolformer) -> None:
    for command in ("", "jobs ", "index "):
        _, out, _ = toolformer(f"{command}--help")
        assert "has the options" not in out
        assert "python -m training_jobs" not in out


def test_version(toolformer: Toolformer) -> None:
    status, out, _ = toolformer("--version")
    assert status == 0
    assert out.split()[0] == "toolformer"
    assert out.split()[1][0].isdigit()


@pytest.mark.parametrize(
    "command", ["evaluate", "jobs corpus", "jobs base", "jobs demonstrations", "jobs pretrain", "index wiki"]
)
def test_jobs_and_indexes_keep_their_own_options(toolformer: Toolformer, command: str) -> None:
    status, _, log = toolformer(f"{command} --no-such-option")
    assert status == 2
    assert FORWARDED[command].split("|")[0] in log, "the module's own usage"
    assert "error:" in log


def test_a_job_gets_its_arguments(toolformer: Toolformer) -> None:
    status, _, log = toolformer("jobs demonstrations --out unused --documents 0")
    assert status == 2
    assert "argument --documents: must be at least 1, not 0" in log
