"""A stage as a Job, against a stand-in of the API server; no real cluster was had."""

from __future__ import annotations

import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from cli.console import CommandError
from cli.stage_run import cluster, command, on_kubernetes
from tests.cli.command import toolformer
from tests.cli.stage_run.api_server import ApiServer, PodScript

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    monkeypatch.setattr(cluster, "_WATCH_SECONDS", 1)
    server = ApiServer()
    with server.serving() as url:
        monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, url)))
        yield server


def kubeconfig(folder: Path, url: str) -> Path:
    path = folder / "kubeconfig"
    context = {"name": "here", "context": {"cluster": "c", "user": "u"}}
    told = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "contexts": [context],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "here", **told}))
    return path


def start(*words: str) -> int:
    return command.main([words[0], "--on", "k8s", *words[1:]])


def test_a_job_is_created_followed_and_ends_with_0(api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    api.scripts = [PodScript(["shard says 1", "\x1b[31mand 2"]), PodScript(["the other"])]
    assert start("annotate", "--run", "/runs/run", "--model", "/runs/base", "--seed", "3") == 0
    shown = capsys.readouterr()
    assert sorted(shown.out.splitlines()) == ["[shard 0] [31mand 2", "[shard 0] shard says 1", "[shard 1] the other"]
    assert "job stage-annotate is created in namespace toolformer" in shown.err
    assert "2 of 8 shards done" in shown.err
    args = api.objects["jobs", "stage-annotate"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert args == ["training_jobs.annotate", "--run", "/runs/run", "--model", "/runs/base", "--seed", "3"]
    assert {kind for kind, _ in api.objects} == {"jobs", "pods", "configmaps", "persistentvolumeclaims"}


def test_a_failure_gives_its_exit_status_and_why(api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    api.scripts = [PodScript(["fine"]), PodScript(["too large a batch"], status=137, reason="OOMKilled")]
    assert start("filter") == 137
    shown = capsys.readouterr()
    assert "[shard 1] too large a batch" in shown.out
    assert "shard 1 failed with exit status 137 (OOMKilled)" in shown.err
    assert "job stage-filter failed: BackoffLimitExceeded: so it went" in shown.err


def test_a_log_that_breaks_is_taken_up_where_it_was(api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    api.scripts, api.cut_logs_after, api.broken_watches = [PodScript([f"line {n}" for n in range(9)])], 6, 1
    assert start("merge") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [f"line {n}" for n in range(9)]
    assert "etcd is away; it is asked again" in shown.err
    assert api.cut  # it did break
    first, again, *_ = api.asked("GET pods/log")
    assert "sinceTime" not in first
    assert again["sinceTime"] == "2026-11-21T07:00:03Z"  # a little before line 5's stamp, which is of another zone


def test_what_keeps_a_pod_waiting_is_said(api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    api.scripts = [PodScript(waiting="ImagePullBackOff")]
    assert start("merge") == 0
    assert "cannot start: ImagePullBackOff: no such image; it is tried again until Ctrl-C" in capsys.readouterr().err


def test_one_that_ended_is_replaced_and_one_that_runs_only_when_told(
    api: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start("merge") == start("merge") == 0
    assert len(api.asked("DELETE jobs")) == 1
    job = api.objects["jobs", "stage-merge"]
    job.pop("status")
    with pytest.raises(CommandError, match=r"is there and runs: kubectl .* --replace stops it"):
        start("merge")
    assert len(api.asked("DELETE jobs")) == 1

    def end() -> None:
        with api.change:
            api.change.wait_for(lambda: job["metadata"]["uid"] in api.deleted)
        time.sleep(0.2)  # its pods take so long to end
        api.forget("stage-merge")

    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    assert start("merge", "--replace") == 0
    ending.join()
    assert capsys.readouterr().err.count("job stage-merge of before is deleted") == 2
    assert api.objects["jobs", "stage-merge"]["metadata"]["uid"] != job["metadata"]["uid"]


def test_a_job_that_somebody_else_replaces_is_not_taken_for_ours(api: ApiServer) -> None:
    api.scripts = [PodScript(endless=True)]

    def replace() -> None:
        with api.change:
            api.change.wait_for(lambda: ("pods", "stage-merge-0-x") in api.objects)
            api.objects["jobs", "stage-merge"]["metadata"]["uid"] = "theirs"

    other = threading.Thread(target=replace)
    other.start()
    with pytest.raises(CommandError, match="job stage-merge was deleted by somebody else"):
        start("merge")
    other.join()
    assert not api.asked("DELETE jobs")
    api.remove_job("stage-merge")


@pytest.mark.parametrize(("method", "kind"), [("POST", "jobs"), ("GET", "jobs"), ("GET", "pods")])
def test_missing_rights_are_told_with_what_to_do(api: ApiServer, method: str, kind: str) -> None:
    api.refused = {(method, kind): 403}
    with pytest.raises(CommandError, match=f"{kind} is refused: User .*: your account needs the rights"):
        start("merge")


def test_rights_that_it_can_do_without(api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    api.refused = {("POST", "persistentvolumeclaims"): 403, ("GET", "pods/log"): 403}
    assert start("merge") == 0
    said = capsys.readouterr().err
    assert "PersistentVolumeClaim runs cannot be created: persistentvolumeclaims is refused" in said
    assert "it is taken to be there" in said
    assert "the log of stage-merge-0-x cannot be read: pods/log is refused" in said


def test_a_namespace_that_is_missing_is_told(api: ApiServer) -> None:
    api.refused = {("POST", "persistentvolumeclaims"): 404}
    with pytest.raises(CommandError, match="make the namespace first"):
        start("merge")
    assert not api.asked("POST jobs")


def test_a_cluster_out_of_reach_is_told(api: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, "http://127.0.0.1:9")))
    with pytest.raises(CommandError, match=r"http://127\.0\.0\.1:9 cannot be reached .*refused.*: see kubectl"):
        start("merge")
    with pytest.raises(CommandError, match="set KUBECONFIG, or name a --context it has"):
        start("merge", "--context", "elsewhere")
    for wrong in ("", "no: yaml: at all"):
        (tmp_path / "kubeconfig").write_text(wrong)
        with pytest.raises(CommandError, match=r"^no cluster: .*: set KUBECONFIG"):
            start("merge")


def test_a_cluster_that_is_lost_meanwhile_is_told(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_kubernetes, "_PATIENCE_SECONDS", 0.5)
    api.broken_watches = 1000
    with pytest.raises(
        CommandError, match="etcd is away; the job goes on: kubectl -n toolformer logs -f job/stage-merge"
    ):
        start("merge")


@pytest.mark.slow
async def test_ctrl_c_deletes_the_job_and_says_so(api: ApiServer) -> None:
    api.scripts = [PodScript(["at work"], endless=True, last_words="chunk 3 is kept")]
    async with toolformer("jobs", "run", "annotate", "--on", "k8s") as running:
        await running.line_with("at work", "out")
        running.process.send_signal(signal.SIGINT)
        assert await running.ended() == 130
    assert "annotate was stopped; what it finished is kept" in running.log
    assert "[shard 0] chunk 3 is kept" in running.out
    assert not {kind for kind, _ in api.objects} & {"jobs", "pods"}


@pytest.mark.parametrize("stage", command.STAGES)
def test_what_is_printed_is_what_kubernetes_takes(
    stage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere")  # it asks no cluster
    assert start(stage, "--dry-run") == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    for one in printed:
        kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)
    assert [one["kind"] for one in printed].count("Job") == 1
    assert ("Service" in {one["kind"] for one in printed}) == (stage == "finetune")


def test_a_script_gives_way_to_arguments_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    """A corpus of one's own texts is not generated before."""
    assert start("corpus", "--dry-run") == 0
    [job] = [one for one in yaml.safe_load_all(capsys.readouterr().out) if one["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-euc"]
    assert "corpus generate" in container["args"][0]
    assert start("corpus", "--dry-run", "select", "/runs/texts/a.json.gz", "--out", "/runs/run/corpus") == 0
    [job] = [one for one in yaml.safe_load_all(capsys.readouterr().out) if one["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert "command" not in container
    assert container["args"] == ["training_jobs.corpus", "select", "/runs/texts/a.json.gz", "--out", "/runs/run/corpus"]


def test_torchrun_stays_before_arguments_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert start("finetune", "--dry-run", "--run", "/x") == 0
    [job] = [one for one in yaml.safe_load_all(capsys.readouterr().out) if one["kind"] == "Job"]
    words = job["spec"]["template"]["spec"]["containers"][0]["args"]
    assert words[0] == "torch.distributed.run"
    assert words[-3:] == ["training_jobs.finetune", "--run", "/x"]


def test_a_folder_without_the_job_is_told(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="holds no Job for corpus; it has none"):
        start("corpus", "--kustomize", "k8s/base")
    with pytest.raises(CommandError, match="is no folder"):
        start("merge", "--kustomize", str(tmp_path / "none"))
