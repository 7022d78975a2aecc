"""A stage as a compose file describes it, which a stand-in tells; tests/containers have an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli import jobs_run
from cli.console import CommandError
from cli.stage_run import command
from cli.stage_run.compose import ComposeStage
from cli.stage_run.words import package
from docker import types

MERGE: dict[str, Any] = {
    "image": "toolformer-jobs", "profiles": ["jobs"], "restart": "no", "init": True, "read_only": True,
    "command": ["training_jobs.merge", "--run", "/runs/run"], "entrypoint": None, "cap_drop": ["ALL"],
    "environment": {"OMP_NUM_THREADS": "1", "UNSET": None}, "networks": {"tools": None},
    "tmpfs": ["/tmp:size=64m,noexec"],
    "security_opt": ["no-new-privileges:true"], "logging": {"driver": "json-file", "options": {"max-size": "10m"}},
    "deploy": {"resources": {"limits": {"memory": "2147483648", "cpus": 1.5, "pids": 512}}},
    "volumes": [
        {"type": "volume", "source": "runs", "target": "/runs"},
        {"type": "bind", "source": "/srv/models", "target": "/data", "read_only": True},
    ],
}  # fmt: skip
CONFIG = {
    "name": "toolformer",
    "services": {"merge": MERGE, "gateway": {"image": "toolformer-gateway"}},
    "networks": {"tools": {"name": "toolformer_tools"}},
    "volumes": {"runs": {"name": "toolformer_runs"}},
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the stand-in says; its words are in ``asked`` beside it."""
    program, said = tmp_path / "docker", tmp_path / "config.json"
    said.write_text(json.dumps(CONFIG))
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat {said}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return said


def test_a_container_has_all_that_the_file_says_and_no_more(config: Path) -> None:
    made = ComposeStage("merge", [], None, "mine").creation()
    assert made.pop("name").startswith("toolformer-merge-run-")
    assert made == {
        "image": "toolformer-jobs", "entrypoint": None, "command": ["training_jobs.merge", "--run", "/runs/run"],
        "environment": {"OMP_NUM_THREADS": "1"}, "user": None, "init": True, "read_only": True,
        "tmpfs": {"/tmp": "size=64m,noexec"}, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"],
        "log_config": {"type": "json-file", "config": {"max-size": "10m"}}, "network": "toolformer_tools",
        "volumes": ["toolformer_runs:/runs:rw", "/srv/models:/data:ro"], "mem_limit": 2 << 30,
        "nano_cpus": 1_500_000_000, "pids_limit": 512, "shm_size": None, "device_requests": [],
        "labels": {
            "com.docker.compose.project": "toolformer", "com.docker.compose.service": "merge",
            "com.docker.compose.oneoff": "True",
        },
    }  # fmt: skip
    asked = (config.parent / "asked").read_text()
    assert "-p mine" in asked
    assert "--profile jobs" in asked


def test_arguments_of_ones_own_take_the_place_of_the_files(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["merge", "--on", "docker", "--dry-run", "--run", "/x"]) == 0
    printed = json.loads(capsys.readouterr().out)["services"]["merge"]
    assert printed["command"] == ["training_jobs.merge", "--run", "/x"]
    assert "build" not in printed
    assert "restart" not in printed


def test_gpus_that_the_file_reserves_are_asked_for(config: Path) -> None:
    for device, asked in (
        ({"driver": "nvidia", "count": -1}, {"driver": "nvidia", "count": -1, "device_ids": []}),
        ({"driver": "nvidia", "count": 2}, {"driver": "nvidia", "count": 2, "device_ids": []}),
        ({"device_ids": ["0", "3"]}, {"driver": "", "count": None, "device_ids": ["0", "3"]}),
    ):
        reserved = {"resources": {"reservations": {"devices": [{"capabilities": ["gpu"], **device}]}}}
        merge = {**MERGE, "deploy": reserved, "shm_size": "17179869184"}
        config.write_text(json.dumps({**CONFIG, "services": {"merge": merge}}))
        made = ComposeStage("merge", [], None, None).creation()
        assert made["device_requests"] == [{**asked, "capabilities": [["gpu"]]}]
        assert made["shm_size"] == 16 << 30
        assert types.DeviceRequest(**made["device_requests"][0])


def test_torchrun_stays_and_a_script_gives_way(config: Path) -> None:
    torchrun = ["torch.distributed.run", "--nproc-per-node", "gpu", "--module"]
    script = ["for name in a b; do echo $$name; done; exec python -m training_jobs.merge"]
    for entrypoint, words, before in (
        (None, [*torchrun, "training_jobs.merge", "-x"], torchrun),
        (["sh"], script, []),
    ):
        merge = {**MERGE, "entrypoint": entrypoint, "command": words}
        config.write_text(json.dumps({**CONFIG, "services": {"merge": merge}}))
        as_it_is, own = (ComposeStage("merge", given, None, None).creation() for given in ([], ["--run", "/x"]))
        assert as_it_is["command"] == [word.replace("$$", "$") for word in words], "compose writes dollars twice"
        assert as_it_is["entrypoint"] == entrypoint
        assert own["command"] == [*before, "training_jobs.merge", "--run", "/x"]
        assert own["entrypoint"] is None


def test_what_cannot_be_started_is_told(config: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="has no job filter; it has merge"):
        ComposeStage("filter", [], None, None)
    kinds: dict[str, Any] = {"resources": {"reservations": {"generic_resources": [{}]}}}
    scratch = [{"type": "tmpfs", "target": "/scratch"}]
    for wrong, told in (
        ({"privileged": True}, "privileged"),
        ({"deploy": kinds}, "deploy.resources.reservations.generic_resources"),
        ({"volumes": scratch}, "a volume at /scratch that is neither named nor a folder"),
    ):
        config.write_text(json.dumps({**CONFIG, "services": {"merge": {**MERGE, **wrong}}}))
        with pytest.raises(CommandError, match=f"{told}: not understood here; use `compose run`"):
            ComposeStage("merge", [], None, None)
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    config.write_text(json.dumps(CONFIG))
    with pytest.raises(CommandError, match=r"no Docker engine answers .*: start it, or set DOCKER_HOST"):
        command.main(["merge", "--on", "docker"])
    (tmp_path / "docker").write_text("#!/bin/sh\necho 'yaml: line 3: no' >&2; exit 15\n")
    with pytest.raises(CommandError, match="docker compose failed: yaml: line 3: no"):
        ComposeStage("merge", [], None, None)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    with pytest.raises(CommandError, match="docker is not installed"):
        ComposeStage("merge", [], None, None)


def test_a_stage_here_is_the_module_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["filter", "--dry-run", "--tau", "0.5"]) == 0
    assert capsys.readouterr().out == "python -m training_jobs.filter --tau 0.5\n"
    with pytest.raises(SystemExit) as ended:
        command.main(["merge", "--run", "/nowhere/at/all"])
    assert ended.value.code == 1
    assert "run the stage that writes filter first" in capsys.readouterr().err


def test_options_of_another_place_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["merge", "--on", "docker", "--context", "mine"])
    assert ended.value.code == 2
    assert "--context is for --on k8s" in capsys.readouterr().err


def test_the_help_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["merge", "--help"], ["--on", "k8s", "--help"]):
        with pytest.raises(SystemExit) as ended:
            jobs_run.main(arguments)
        assert ended.value.code == 0
        assert "toolformer jobs run filter --on docker --run /runs/run --tau 0.5" in capsys.readouterr().out


def test_a_package_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_a_folder").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("only_a_folder", "nowhere_at_all"):
        with pytest.raises(CommandError, match=f"needs the package {name}: pip install -r requirements/cli-remote.txt"):
            package(name, "docker")
