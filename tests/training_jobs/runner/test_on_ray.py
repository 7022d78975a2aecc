"""The runner on a real Ray of two worker processes, some of which are killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.support.waiting import wait_for
from tests.training_jobs.runner import forked
from tests.training_jobs.runner.counting import corpus, count
from tests.training_jobs.runner.tiny_run import environment, write_corpus, write_model
from training_jobs.errors import StageError
from training_jobs.model_choice import ModelChoice
from training_jobs.runner.work import Needs

pytestmark = pytest.mark.timeout(600)

COUNTING = "tests.training_jobs.runner.counting"
ENVIRON = {"PYTHONPATH": str(Path.cwd()), "RAY_ADDRESS": "", "RAY_DEDUP_LOGS": "0"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    """The variables that name a Ray which was there before; it takes long to start."""
    pytest.importorskip("ray")
    options = ["--head", "--block", "--port=0", "--num-cpus=2", "--include-dashboard=false", "--disable-usage-stats"]
    with tempfile.TemporaryDirectory(prefix="ray") as folder:  # a short name: it has sockets
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options, f"--temp-dir={folder}"]
        environ, written = {**ENVIRON, "RAY_AUTH_MODE": "token"}, Path(folder, "ray_current_cluster")
        for _ in range(5):  # on a busy machine Ray may give up its own start
            ray = subprocess.Popen(command, env=os.environ | environ, stdout=subprocess.DEVNULL)
            wait_for(lambda: (written.exists() and bool(written.read_text())) or ray.poll() is not None)  # noqa: B023
            if ray.poll() is None:
                break
        yield {**environ, "RAY_ADDRESS": written.read_text()}
        ray.terminate()
        ray.wait()


def descendants(pid: int) -> Iterator[int]:
    """The processes below ``pid``."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            for child in map(int, task.read_text().split()):
                yield child
                yield from descendants(child)


def actors_below(pid: int | None) -> list[int]:
    """The worker processes of commands on Ray, below the process that started Ray."""
    assert pid is not None
    return [one for one in descendants(pid) if title(one).startswith("ray::_ChunkActor")]


def title(pid: int) -> str:
    """What a process calls itself; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.slow
def test_annotate_to_merge_with_a_killed_worker_makes_the_bytes_of_a_local_run(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    write_model(tmp_path / "model")
    write_corpus(tmp_path / "texts", 60)
    texts = tmp_path / "texts" / "corpus" / "A.jsonl"

    def begin(name: str, *where: str) -> tuple[BaseProcess, Path]:
        run, log = tmp_path / name, tmp_path / f"{name}.log"
        words = [texts, "--run", run, "--model", tmp_path / "model", "--chunk", "2", "--unchecked", *where]
        return forked.run("training_jobs.pipeline", words, environ, log), log

    with environment(tmp_path) as found:
        environ = {**found, **ENVIRON}
        forked.finish(*begin("local"))
        for _ in range(5):  # on a busy machine Ray may give up its own start
            driver, log = begin("ray", "--on", "ray", "--workers", "2")
            parts = tmp_path / "ray/annotate/A.jsonl.parts"
            wait_for(lambda: len(list(parts.glob("0*.jsonl"))) > 1 or not driver.is_alive())  # noqa: B023
            if driver.is_alive():
                break
            assert "Ray does not start" in forked.finish(driver, log, status=1)
            log.unlink()
        os.kill(actors_below(driver.pid)[0], signal.SIGKILL)
        said = forked.finish(driver, log)
    assert re.search(r"annotate A: .*(lost its worker|was lost) .*\(.+\); another takes its place\n", said)
    for made in ("annotate/A", "execute/A", "score/A", "filter/A", "merge/with_calls", "merge/without_calls"):
        assert (tmp_path / f"ray/{made}.jsonl").read_bytes() == (tmp_path / f"local/{made}.jsonl").read_bytes()


@pytest.mark.slow
def test_a_workers_trouble_ends_the_stage_as_it_does_here(tmp_path: Path, cluster: dict[str, str]) -> None:
    source, target, log = corpus(tmp_path / "in.jsonl", 30), tmp_path / "out.jsonl", tmp_path / "log"

    def finish(bad: str, deadly: str, status: int = 1) -> str:
        log.unlink(missing_ok=True)
        return forked.finish(forked.run(COUNTING, [source, target, 2, bad, deadly], cluster, log), log, status)

    assert re.search(r"^.*in\.jsonl:8: d7 cannot be counted$", finish("d7", ""), re.MULTILINE)
    said = finish("", "d20")
    assert said.count("count: chunk 6 lost its worker (") == 2
    assert re.search(r"^chunk 6 lost its worker \(.+\), 3 times now\. .* Run again to go on$", said, re.MULTILINE)
    assert "opened" in said  # what a worker says arrives, if the command lives on for a while, as it does here
    finish("", "", 0)
    notes = [json.loads(line)["chunk"] for line in (tmp_path / "out.jsonl.log.jsonl").read_text().splitlines()]
    # None was done twice. A worker that ended with the command may have written its chunk, and left no note of it.
    assert len(notes) == len(set(notes))
    count(source, tmp_path / "here.jsonl")
    assert target.read_bytes() == (tmp_path / "here.jsonl").read_bytes()


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_its_workers(tmp_path: Path, cluster: dict[str, str]) -> None:
    source, log = corpus(tmp_path / "in.jsonl", 30_000), tmp_path / "log"
    driver = forked.run(COUNTING, [source, tmp_path / "out.jsonl", 2, "", ""], cluster, log)
    assert driver.pid is not None
    wait_for(lambda: bool(list(tmp_path.glob("out.jsonl.parts/0*.jsonl"))) or not driver.is_alive())
    assert driver.is_alive(), log.read_text()
    assert actors_below(os.getpid())
    os.kill(driver.pid, signal.SIGINT)
    driver.join(60)
    assert driver.exitcode not in (0, None)
    wait_for(lambda: not actors_below(os.getpid()))


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(StageError, match=r"--on ray: .*; install the extra `ray`: pip install 'toolformer\[ray\]'"):
        count(corpus(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl", on_ray=True)


def test_a_model_on_a_gpu_needs_one(tmp_path: Path) -> None:
    assert ModelChoice(tmp_path, threads=2).needs == Needs(2, 0)
    assert ModelChoice(tmp_path, device="cuda").needs == Needs(1, 1)
    assert ModelChoice(tmp_path, device="cuda", server="http://127.0.0.1:1").needs == Needs(1, 0)
