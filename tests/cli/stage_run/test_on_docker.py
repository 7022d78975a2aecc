"""``--on docker``: which commands are built from the options, and how they end; tests/containers have an engine."""

import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.checkout import CHECKOUT
from cli.console import CommandError
from cli.stage_run import command
from tests.cli.stage_run.conftest import Programs

COMPOSE = ["docker", "compose", "--project-directory", str(CHECKOUT), "--profile", "jobs"]


def test_the_stage_runs_as_the_compose_file_describes_it(
    programs: Programs, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert command.main(["merge", "--on", "docker", "--project", "mine", "--compose", str(tmp_path / "c.yml")]) == 0
    [call] = programs.calls()
    before, after = call["words"][:-2], call["words"][-2:]
    assert before == [*COMPOSE, "-f", str(tmp_path / "c.yml"), "-p", "mine", "run", "--rm", "--no-deps", "-T", "--name"]
    assert after[0].startswith("toolformer-merge-")
    assert after[1] == "merge"
    shown = capfd.readouterr()
    assert shown.out == "at work\n"
    assert f"merge runs in container {after[0]}" in shown.err


def test_its_exit_status_is_the_stages(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    for status, hint in ((3, "its log above says why\n"), (137, "137 is mostly too little memory")):
        programs.plan(status=status)
        assert command.main(["merge", "--on", "docker"]) == status
        said = capfd.readouterr().err
        assert f"merge ended with exit status {status}; " in said
        assert hint in said


TORCHRUN = ["torch.distributed.run", "--nproc-per-node", "gpu", "--module"]


@pytest.mark.parametrize(
    ("described", "words"),
    [
        ({"command": ["training_jobs.merge", "--run", "/runs/run"], "entrypoint": None}, ["merge"]),
        ({"command": [*TORCHRUN, "training_jobs.merge", "-x"]}, ["merge", *TORCHRUN]),
        (
            {"command": ["exec python -m training_jobs.merge"], "entrypoint": ["sh"]},
            ["--entrypoint", "python -m", "merge"],
        ),
    ],
    ids=["a module", "torchrun stays", "a script gives way"],
)
def test_options_of_ones_own_take_the_place_of_the_files(
    programs: Programs, capsys: pytest.CaptureFixture[str], described: dict[str, Any], words: list[str]
) -> None:
    programs.plan(services={"merge": described})
    assert command.main(["merge", "--on", "docker", "--dry-run", "--run", "/a b"]) == 0
    printed = shlex.split(capsys.readouterr().out)
    name = printed.index("--name")
    assert printed[: name + 1] == [*COMPOSE, "run", "--rm", "--no-deps", "-T", "--name"]
    assert printed[name + 2 :] == [*words, "training_jobs.merge", "--run", "/a b"]
    assert not programs.calls("run"), "nothing is started"


def test_what_cannot_be_started_is_reported(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.plan(services={"merge": {}})
    with pytest.raises(CommandError, match="has no job filter; it has merge"):
        command.main(["filter", "--on", "docker", "--tau", "1"])
    programs.plan(refused={"config json": "yaml: line 3: no"})
    with pytest.raises(CommandError, match="docker compose failed: yaml: line 3: no"):
        command.main(["filter", "--on", "docker", "--tau", "1"])
    monkeypatch.setenv("PATH", str(programs.folder / "nothing"))
    for words in ([], ["--tau", "1"]):
        with pytest.raises(CommandError, match="docker is not installed: install Docker with its compose plugin"):
            command.main(["filter", "--on", "docker", *words])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_the_container_and_shows_its_last_words(
    programs: Programs, capfd: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    programs.plan(endless=True)
    with programs.pressed(number, "run"):
        assert command.main(["merge", "--on", "docker"]) == 130
    shown = capfd.readouterr()
    assert shown.out.splitlines() == ["at work", "chunk 3 is kept"]
    assert "merge was stopped; what it finished is kept" in shown.err
    [run] = programs.calls("run")
    name = run["words"][run["words"].index("--name") + 1]
    assert programs.calls("stop", "-t", "20", name)
    assert programs.calls("rm", "--force", name)


def test_a_container_that_does_not_stop_is_killed_by_a_second_ctrl_c(programs: Programs) -> None:
    programs.plan(endless=True, deaf=True)
    with programs.pressed(signal.SIGINT, "run", "stop"):
        assert command.main(["merge", "--on", "docker"]) == 130
    assert programs.calls("rm", "--force")


def test_a_stage_here_is_the_module_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["filter", "--dry-run", "--tau", "0.5"]) == 0
    assert capsys.readouterr().out == "python -m training_jobs.filter --tau 0.5\n"
    assert command.main(["filter", "--on", "ray", "--dry-run", "--workers", "4"]) == 0
    assert capsys.readouterr().out == "python -m training_jobs.filter --workers 4 --on ray\n"
    with pytest.raises(SystemExit) as ended:
        command.main(["merge", "--run", "/nowhere/at/all"])
    assert ended.value.code == 1
    assert "run the stage that writes filter first" in capsys.readouterr().err


def test_on_ray_runs_what_is_in_chunks(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["finetune", "--on", "ray"])
    assert ended.value.code == 2
    assert "finetune does not run on ray; these do: annotate, execute, filter, merge" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:  # without a stage it is the whole pipeline
        command.main(["x.jsonl", "--on", "ray", "--run", str(tmp_path), "--model", str(tmp_path)])
    assert ended.value.code == 1
    assert "holds no checkpoint" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        command.main(["x", "--on", "ray", "--run", "r", "--model", "m", "--rank", "0", "--world-size", "2"])
    assert ended.value.code == 1
    assert "--on ray shares the chunks out itself" in capsys.readouterr().err


def test_options_of_another_place_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["merge", "--on", "docker", "--context", "mine"])
    assert ended.value.code == 2
    assert "--context is for --on k8s" in capsys.readouterr().err


def test_the_help_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["merge", "--help"], ["--on", "k8s", "--help"]):
        with pytest.raises(SystemExit) as ended:
            command.main(arguments)
        assert ended.value.code == 0
        assert "toolformer jobs run filter --on docker --run /runs/run --tau 0.5" in capsys.readouterr().out
