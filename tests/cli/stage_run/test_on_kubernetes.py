"""``--on k8s``: which Job is created, and what kubectl is asked; no real cluster was available."""

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from cli.console import CommandError
from cli.stage_run import command, on_kubernetes
from cli.stage_run.programs import STAGES
from tests.cli.stage_run.conftest import Programs

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
COMPLETE = [{"type": "Complete", "status": "True"}]
FAILED = [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "so it went"}]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_kubernetes, "_LOOK_SECONDS", 0.05)


def pod(name: str, phase: str = "Running", status: int | None = None, finished: str = "") -> dict[str, Any]:
    state = {"running": {}} if status is None else {"terminated": {"exitCode": status, "finishedAt": finished}}
    return {"metadata": {"name": name}, "status": {"phase": phase, "containerStatuses": [{"state": state}]}}


def start(*words: str) -> int:
    return command.main([words[0], "--on", "k8s", *words[1:]])


def container(printed: str) -> dict[str, Any]:
    """The only container of the only Job."""
    [job] = [one for one in yaml.safe_load_all(printed) if one["kind"] == "Job"]
    [found] = job["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_a_job_is_created_followed_and_ends_with_0(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    programs.plan(
        pods=[pod("a-0-x"), pod("a-1-x"), pod("a-2-x", "Pending")], logs=["line 1", "line 2"], conditions=COMPLETE
    )
    options = ["--run", "/runs/run", "--model", "/runs/base", "--seed", "3"]
    assert start("annotate", "--context", "mine", *options) == 0
    shown = capfd.readouterr()
    assert sorted(shown.out.splitlines()) == ["line 1", "line 1", "line 2", "line 2"]
    assert "job stage-annotate is created in namespace toolformer" in shown.err
    where = ["kubectl", "--context", "mine", "-n", "toolformer"]
    assert all(call["words"][:5] == where for call in programs.calls())
    beside, job = programs.calls("create")
    kinds = {one["kind"] for one in yaml.safe_load_all(beside["given"])}
    assert kinds >= {"PersistentVolumeClaim", "ConfigMap", "NetworkPolicy"}
    assert not kinds & {"Job", "CronJob"}
    made = json.loads(job["given"])
    assert made["metadata"]["name"] == "stage-annotate"
    [container] = made["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["training_jobs.annotate", *options]
    logs = sorted(call["words"][5:] for call in programs.calls("logs"))
    assert logs == [["logs", "--follow", "--prefix", f"pod/a-{n}-x"] for n in range(2)], "one waits still"
    assert programs.calls("get", "pods", "-l", "batch.kubernetes.io/job-name=stage-annotate", "--watch")


def test_a_failure_gives_the_exit_status_of_the_last(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    ends = [("a", 137, "12:00:05"), ("b", 3, "12:00:01"), ("c", 0, "12:00:09")]
    pods = [pod(name, "Failed" if status else "Succeeded", status, when) for name, status, when in ends]
    programs.plan(pods=pods, logs=["too large"], conditions=FAILED)
    assert start("filter") == 137
    assert "job stage-filter failed: BackoffLimitExceeded: so it went" in capfd.readouterr().err
    programs.plan(pods=[], logs=[], conditions=FAILED)
    assert start("filter") == 1


def test_a_log_that_breaks_is_taken_up_again(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    programs.plan(
        pods=[pod("merge-x")], logs=[f"line {n}" for n in range(9)], cut=6, conditions=COMPLETE, until="--since"
    )
    assert start("merge") == 0
    assert capfd.readouterr().out.splitlines() == [f"line {n}" for n in range(9)]


def test_one_that_ended_is_replaced_and_one_that_runs_only_when_asked(programs: Programs) -> None:
    programs.plan(pods=[], logs=[], conditions=COMPLETE)
    assert start("merge") == start("merge") == 0
    assert len(programs.calls("delete", "stage-merge", "--cascade=foreground")) == 1
    job = programs.folder / "job.json"
    job.write_text(json.dumps({"metadata": {"uid": "theirs"}, "status": {}}))
    with pytest.raises(CommandError, match=r"is there and runs: kubectl .* --replace stops it"):
        start("merge")
    assert len(programs.calls("delete")) == 1
    assert start("merge", "--replace") == 0
    assert len(programs.calls("delete")) == 2


def test_a_job_that_somebody_else_replaces_is_not_taken_for_ours(programs: Programs) -> None:
    programs.plan(pods=[], logs=[], conditions=COMPLETE, uid="theirs")
    with pytest.raises(CommandError, match="job stage-merge was deleted by somebody else"):
        start("merge")
    assert not programs.calls("delete")


def test_what_the_cluster_refuses_is_reported(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    there = 'Error from server (AlreadyExists): configmaps "tools" already exists'
    forbidden = "Error from server (Forbidden): persistentvolumeclaims is forbidden: User u cannot create"
    plan = {"pods": [pod("x")], "logs": ["done"], "conditions": COMPLETE}
    programs.plan(refused={"create": f"{there}\n{forbidden}"}, **plan)
    assert start("merge") == 0
    said = capfd.readouterr().err
    assert forbidden in said
    assert "AlreadyExists" not in said
    programs.plan(refused={"create json": 'Error from server (NotFound): namespaces "toolformer" not found'}, **plan)
    with pytest.raises(CommandError, match=r'kubectl .* failed: .*namespaces "toolformer" not found'):
        start("merge", "--replace")


def test_a_cluster_that_is_lost_is_reported(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    away = "The connection to the server 127.0.0.1:9 was refused"
    programs.plan(pods=[], logs=[], conditions=COMPLETE, refused={"get pods json": away}, times=2)
    assert start("merge") == 0, "it is asked again for a while"
    monkeypatch.setattr(on_kubernetes, "_PATIENCE_SECONDS", 0.3)
    programs.plan(pods=[], logs=[], refused={"get pods json": away})
    match = f"{away}; the job goes on: kubectl -n toolformer logs -f job/stage-merge"
    with pytest.raises(CommandError, match=match):
        start("merge")
    programs.plan(refused={"get job json": away})
    with pytest.raises(CommandError, match=away):
        start("merge")
    monkeypatch.setenv("PATH", str(programs.folder / "nothing"))
    with pytest.raises(CommandError, match="kubectl is not installed"):
        start("merge")


def test_ctrl_c_deletes_the_job_and_shows_its_last_words(programs: Programs, capfd: pytest.CaptureFixture[str]) -> None:
    programs.plan(pods=[pod("x")], logs=["at work"], endless=True)
    with programs.pressed(signal.SIGINT, "logs"):
        assert start("annotate") == 130
    shown = capfd.readouterr()
    assert shown.out.splitlines() == ["at work", "chunk 3 is kept"]
    assert "annotate was stopped; what it finished is kept" in shown.err
    assert programs.calls("delete", "stage-annotate", "--cascade=foreground")


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_printed_is_what_kubernetes_takes(
    stage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")  # it asks no cluster
    assert start(stage, "--dry-run") == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    for one in printed:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    assert [one["kind"] for one in printed].count("Job") == 1
    assert {"PersistentVolumeClaim", "ConfigMap", "Service"} <= {one["kind"] for one in printed}


def test_a_script_gives_way_to_arguments_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A corpus of one's own texts is not generated before."""
    assert start("corpus", "--dry-run") == 0
    script = container(capsys.readouterr().out)
    assert script["command"] == ["sh", "-euc"]
    assert "corpora.web generate" in script["args"][0]
    select = ["select", "/runs/texts/a.json.gz", "--out", "/runs/run/corpus"]
    assert start("corpus", "--dry-run", *select) == 0
    own = container(capsys.readouterr().out)
    assert "command" not in own
    assert own["args"] == ["training_jobs.corpora.web", *select]


def test_torchrun_stays_before_arguments_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert start("finetune", "--dry-run", "--run", "/x") == 0
    words = container(capsys.readouterr().out)["args"]
    assert words[0] == "torch.distributed.run"
    assert words[-3:] == ["training_jobs.finetune", "--run", "/x"]


def test_a_folder_without_the_job_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="holds no Job for corpus; it has none"):
        start("corpus", "--kustomize", "k8s/base")
    with pytest.raises(CommandError, match="is no folder"):
        start("merge", "--kustomize", str(tmp_path / "none"))
