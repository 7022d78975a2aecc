"""``toolformer new-tool``: what it writes passes lint, types and its own test, and is served as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.console import CommandError
from cli.new_tool import write_tool
from tests.cli.command import run
from toolformer.tools import ToolRegistry

PYTHON = (sys.executable, "-m")


async def test_the_command_writes_a_tool_and_says_what_to_do(tmp_path: Path) -> None:
    status, out, log = await run("new-tool", "Convert", "--out", str(tmp_path / "convert"))
    assert (status, log) == (0, "")
    assert "TOOLFORMER_TOOLS=" in out
    written = {path.name for path in (tmp_path / "convert").iterdir()}
    assert written == {"service.py", "tools.toml", "test_service.py", "Dockerfile"}
    assert not any("TOOL_" in path.read_text() for path in (tmp_path / "convert").iterdir())
    registry = ToolRegistry.load([tmp_path / "convert" / "tools.toml"], {})
    assert registry.get("Convert").url == "http://127.0.0.1:8110"
    status, _, log = await run("new-tool", "Convert", "--out", str(tmp_path / "convert"))
    assert (status, "is there already; give another --out" in log) == (1, True)


@pytest.mark.parametrize(
    "command",
    [
        [*PYTHON, "ruff", "check", "--config", str(Path("pyproject.toml").resolve()), "."],
        [*PYTHON, "ruff", "format", "--check", "--line-length", "120", "."],
        [*PYTHON, "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "."],
        pytest.param([*PYTHON, "mypy", "--strict", "."], marks=pytest.mark.slow),
    ],
)
def test_the_template_passes(tmp_path: Path, command: list[str]) -> None:
    write_tool("Convert", tmp_path, 8123)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "said"), [("calculator", "'Calculator' already"), ("2x", "a letter, then letters")])
def test_a_name_that_cannot_be(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        write_tool(name, tmp_path, 8123)
    assert not list(tmp_path.iterdir())
