"""``toolformer teach``, tiny: a tool from outside of the repository, the bundled models, a kill in the middle."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from cli.console import CommandError
from cli.teach import BUNDLED, main
from tests.cli.command import descendants, gone, run, toolformer
from tests.training_jobs.teach.doubling import TABLE, doubling

_TAUGHT = Path(__file__).parents[2] / "models" / "gptj-tools"
"""Finetuned, it has forgotten the prompts that ask for calls."""
_OFF = "".join(f"[{name}]\nenabled = false\n" for name in ("Calendar", "WikiSearch", "QA", "MT"))
_TINY = [
    "--documents", "60", "--old-documents", "30", "--steps", "2", "--batch", "2", "--questions", "4", "--count", "1",
    "--tau", "-9", "--proposals", "demonstrations",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute of work, on cores that others use too
async def test_from_a_table_to_a_model_after_a_kill(tmp_path: Path) -> None:
    with doubling() as url:
        (tmp_path / "tools.toml").write_text(_OFF + TABLE)
        env = {"TOOLFORMER_TOOL_DOUBLE_URL": url, "TOOLFORMER_TOOLS": str(tmp_path / "tools.toml")}
        folder = tmp_path / "run"
        command = ["teach", "Double", "--out", str(folder), *_TINY]
        async with toolformer(*command, env=env) as begun:
            await begun.line_with(r"^\[\d+/15\] finetune:")
            started = descendants(begun.process.pid)
            begun.process.send_signal(signal.SIGKILL)
            await begun.process.wait()
        for pid in started:
            await gone(pid)

        status, _, log = await run(*command, env=env)
        assert status == 0, log
    done = re.findall(r"^\[\d+/15\] (\S+): done already", log, re.MULTILINE)
    assert done == ["texts", "propose", "execute", "filter", "hold-out", "merge", *(
        f"old-{name}" for name in ("texts", "propose", "execute", "keep", "merge"))]  # fmt: skip
    assert f"toolformer up --model {folder / 'finetuned' / 'model'}" in log
    taught = json.loads((folder / "evaluation" / "taught" / "results.json").read_text())
    assert {(score["suite"], score["all"]["n"]) for score in taught["scores"]} == {
        ("Double", 4), ("tools-Calculator", 2),
    }  # fmt: skip
    assert all(score["failed"] == 0 for score in taught["scores"])
    page = (folder / "page.md").read_text()
    assert re.findall(r"^\| ([a-z]+(?: \(disabled\))?) \|", page, re.MULTILINE)[:4] == [
        "before (disabled)", "before", "taught (disabled)", "taught",
    ]  # fmt: skip
    config = json.loads((folder / "finetuned" / "model" / "config.json").read_text())
    assert config["n_layer"] == json.loads((BUNDLED / "config.json").read_text())["n_layer"]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_model_that_does_not_follow_the_form_ends_with_status_3(tmp_path: Path) -> None:
    with doubling() as url:
        (tmp_path / "tools.toml").write_text(TABLE.replace("http://127.0.0.1:1", url))
        command = ["teach", str(tmp_path / "tools.toml"), "--out", str(tmp_path / "run"), "--documents", "12"]
        status, _, log = await run(*command, "--base", str(_TAUGHT))
    assert status == 3, log
    assert "gptj-tools does not follow the prompt's form" in log
    assert "--proposals FILE or --rule MODULE:FUNCTION" in log
    assert re.findall(r"^\[(\d+)/17\] \S+: done", log, re.MULTILINE) == ["1", "2"]


def test_a_service_that_does_not_describe_itself(tmp_path: Path) -> None:
    with doubling() as url, pytest.raises(CommandError, match="/tool: does not describe a tool with task and demon"):
        main([url, "--out", str(tmp_path / "run")])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], r"Double is not up at http://127\.0\.0\.1:1 .*: start its service"),
        (["--rule", "no_such_module:f"], "there is no such module here; write module:function"),
        (["--texts", "t.jsonl", "--proposals", "demonstrations"], "leave out --texts"),
    ],
)
def test_what_cannot_be_is_said_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list[str], said: str
) -> None:
    monkeypatch.setitem(os.environ, "TOOLFORMER_TOOLS", "")
    (tmp_path / "tools.toml").write_text(TABLE)
    with pytest.raises(CommandError, match=said):
        main([str(tmp_path / "tools.toml"), "--out", str(tmp_path / "run"), *given])
    with pytest.raises(CommandError, match="there is no tool 'Dubble'"):
        main(["Dubble"])
    assert not (tmp_path / "run").exists()


def test_the_steps_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tools.toml").write_text(TABLE)
    assert main([str(tmp_path / "tools.toml"), "--out", str(tmp_path / "run"), "--list", "--texts", "t.jsonl"]) == 0
    names = re.findall(r"^ *([a-z][a-z-]+)  ", capsys.readouterr().out, re.MULTILINE)
    assert names[1:] == [
        "corpus", "form", "annotate", "execute", "filter", "hold-out", "merge", "old-texts", "old-propose",
        "old-execute", "old-keep", "old-merge", "finetune", "evaluate-before", "evaluate-taught", "page",
    ]  # fmt: skip
