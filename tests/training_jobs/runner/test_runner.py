"""The runner: the same bytes whatever happens, and trouble reported in a line."""

import argparse
import io
import json
import os
import signal
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.waiting import wait_for
from tests.training_jobs.runner import forked
from tests.training_jobs.runner.counting import CountJob, corpus, count
from training_jobs.errors import StageError
from training_jobs.model_choice import add_model, model_choice
from training_jobs.runner.chunks import plan
from training_jobs.runner.parts import Parts
from training_jobs.runner.progress import StageProgress
from training_jobs.runner.ranks import Shard
from training_jobs.runner.running import Running, Stage, run_stages


def test_the_output_is_one_line_a_document_in_order(tmp_path: Path) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 20), tmp_path / "out.jsonl"
    assert count(source, target)
    assert [json.loads(line)["id"] for line in target.read_text().splitlines()] == [f"d{n}" for n in range(20)]
    assert not list(tmp_path.glob("*.parts"))
    notes = [json.loads(line) for line in (tmp_path / "out.jsonl.log.jsonl").read_text().splitlines()]
    assert sum(note["documents"] for note in notes) == 20


def test_workers_ranks_and_chunks_leave_the_bytes_alone(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.jsonl", 29)
    assert count(source, tmp_path / "one.jsonl")
    output = io.StringIO()
    assert count(source, tmp_path / "three.jsonl", workers=3, console=Console(file=output))
    assert output.getvalue().count("count: opened\n") == 3  # what a worker says arrives
    assert [count(source, tmp_path / "ranks.jsonl", shard=Shard(rank, 3)) for rank in (2, 0)] == [False, False]
    assert count(source, tmp_path / "ranks.jsonl", shard=Shard(1, 3))
    assert count(source, tmp_path / "other.jsonl", chunk=1000)
    for name in ("three", "ranks", "other"):
        assert (tmp_path / f"{name}.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_the_rank_that_ends_last_finds_all_outputs_whole(tmp_path: Path) -> None:
    source = corpus(tmp_path / "in.jsonl", 12)
    first, second = (Stage("count", source, tmp_path / name, CountJob(), 3) for name in ("a.jsonl", "b.jsonl"))

    def run(stages: list[Stage], rank: int) -> bool:
        return run_stages(stages, Running(shard=Shard(rank, 2), console=Console(quiet=True)))

    # Each is the last at one of the two.
    assert not run([first], 1)
    assert run([first], 0)
    assert not run([first, second], 0)
    assert run([first, second], 1)
    with pytest.raises(StageError, match="--restart would have each rank forget"):
        run_stages([first], Running(shard=Shard(0, 2), restart=True, console=Console(quiet=True)))


def test_an_empty_input_gives_an_empty_output(tmp_path: Path) -> None:
    assert count(corpus(tmp_path / "in.jsonl", 0), tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_only_what_is_missing_is_done_again(tmp_path: Path) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 12), tmp_path / "out.jsonl"
    with pytest.raises(StageError, match=r"in\.jsonl:8: d7 cannot be counted"):
        count(source, target, job=CountJob(bad="d7"))
    parts = sorted(path.name for path in (tmp_path / "out.jsonl.parts").glob("0*.jsonl"))
    assert [name[:8] for name in parts] == ["00000000", "00000001"]
    spoilt = tmp_path / "out.jsonl.parts" / parts[0]
    spoilt.write_bytes(spoilt.read_bytes()[:-3])  # as a disk may after a power cut
    assert count(source, target)
    notes = [json.loads(line)["chunk"] for line in (tmp_path / "out.jsonl.log.jsonl").read_text().splitlines()]
    assert notes == [0, 1, 0, 2, 3]
    assert count(source, target)
    assert len((tmp_path / "out.jsonl.log.jsonl").read_text().splitlines()) == 5  # the last time nothing was left
    assert len(target.read_text().splitlines()) == 12


@pytest.mark.parametrize("workers", [1, 2])
def test_a_workers_trouble_ends_the_stage_with_its_message(tmp_path: Path, workers: int) -> None:
    source = corpus(tmp_path / "in.jsonl", 12)
    with pytest.raises(StageError, match=r"in\.jsonl:8: d7 cannot be counted"):
        count(source, tmp_path / "out.jsonl", job=CountJob(bad="d7"), workers=workers)
    source.write_text(source.read_text().replace('"d10"', "10"))
    with pytest.raises(StageError, match=r"in\.jsonl:11: id: .*not a Document"):
        count(source, tmp_path / "other.jsonl", workers=workers)


def test_output_of_another_input_is_not_taken_for_this_ones(tmp_path: Path) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl"
    count(source, target)
    corpus(source, 6)
    with pytest.raises(StageError, match=r"out\.jsonl was made from other input or settings \(input\): give --restart"):
        count(source, target)
    assert count(source, target, restart=True)
    assert len(target.read_text().splitlines()) == 6
    target.write_bytes(b"")  # no longer what was made
    assert count(source, target)
    assert len(target.read_text().splitlines()) == 6


def test_a_stage_that_did_nothing_yet_takes_other_settings(tmp_path: Path) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl"
    with pytest.raises(StageError, match="d1 cannot be counted"):
        count(source, target, job=CountJob(bad="d1"))
    assert count(source, target, chunk=2)
    assert len(target.read_text().splitlines()) == 5


def test_two_processes_do_not_do_the_same_rank(tmp_path: Path) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 5), tmp_path / "out.jsonl"
    settings = {"stage": "count", "format": 1, "input": plan(source, 3).sha256, "chunk_documents": 3, "counts": "words"}
    with Parts(target, settings, 2).held(0), pytest.raises(StageError, match=r"another process is at it \(rank 0\)"):
        count(source, target)


def test_a_missing_input_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(StageError, match=r"none\.jsonl: cannot be read .*run the stage before this one first"):
        count(tmp_path / "none.jsonl", tmp_path / "out.jsonl")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, Shard()),
        ({"JOB_COMPLETION_INDEX": "2", "WORLD_SIZE": "5"}, Shard(2, 5)),
        ({"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Shard(1, 2)),
        ({"RANK": "0", "WORLD_SIZE": "1", "JOB_COMPLETION_INDEX": ""}, Shard()),
        ({"JOB_COMPLETION_INDEX": "2"}, "JOB_COMPLETION_INDEX says rank 2 but nothing says of how many"),
        ({"RANK": "5", "WORLD_SIZE": "5"}, "rank 5 of 5"),
        ({"WORLD_SIZE": "5"}, "nothing says which this is"),
        ({"RANK": "one"}, "RANK: 'one' is not a number"),
    ],
)
def test_rank_and_world_size_come_from_the_environment(environ: dict[str, str], expected: Shard | str) -> None:
    if isinstance(expected, Shard):
        assert Shard.read(environ) == expected
    else:
        with pytest.raises(StageError, match=expected):
            Shard.read(environ)


def test_progress_shows_rate_and_time_left_of_this_run_alone() -> None:
    now = [0.0]
    output = io.StringIO()
    with StageProgress("count", 1000, 500, Console(file=output, width=200), clock=lambda: now[0]) as progress:
        now[0] = 5.0
        progress.advance(50, {"calls": 20})
        assert not output.getvalue()  # not more than a line in ten seconds
        now[0] = 20.0
        progress.advance(50, {"calls": 20}, "loss 1.5")
    [line] = output.getvalue().splitlines()
    assert line == "count: 600/1,000 documents, loss 1.5, 5.0 documents/s, 40 calls (2.0/s), 0:01:20 left"


def begin(folder: Path, workers: int) -> BaseProcess:
    """The stage from ``in.jsonl`` to ``out.jsonl`` as a process."""
    arguments = [folder / "in.jsonl", folder / "out.jsonl", workers]
    return forked.run("tests.training_jobs.runner.counting", arguments, {}, folder / "log")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_killed_at_random_moments_it_continues_to_the_same_bytes(tmp_path: Path, workers: int) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 300), tmp_path / "out.jsonl"
    count(source, tmp_path / "undisturbed.jsonl")
    parts = tmp_path / "out.jsonl.parts"
    forked.kill_at_random(lambda: begin(tmp_path, workers), (0.0, 0.4 / workers), seed=workers, begun=parts.exists)
    forked.finish(begin(tmp_path, workers), tmp_path / "log")
    assert target.read_bytes() == (tmp_path / "undisturbed.jsonl").read_bytes()
    assert not parts.exists()


@pytest.mark.slow
def test_a_killed_worker_is_reported_and_nothing_done_is_lost(tmp_path: Path) -> None:
    source, target = corpus(tmp_path / "in.jsonl", 300), tmp_path / "out.jsonl"
    running = begin(tmp_path, 2)
    wait_for(lambda: len(list(tmp_path.glob("out.jsonl.parts/0*.jsonl"))) > 3)
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
    workers = [int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]
    os.kill(workers[0], signal.SIGKILL)
    assert "a worker process ended (exit code -9)" in forked.finish(running, tmp_path / "log", status=1)
    count(source, tmp_path / "undisturbed.jsonl")
    assert count(source, target)
    assert target.read_bytes() == (tmp_path / "undisturbed.jsonl").read_bytes()


def test_under_torchrun_each_process_has_its_own_gpu_and_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = argparse.ArgumentParser()
    add_model(parser)
    for name, value in {"LOCAL_RANK": "3", "RANK": "11", "WORLD_SIZE": "16"}.items():
        monkeypatch.setenv(name, value)
    for given, device in (("cuda", "cuda:3"), ("cuda:0", "cuda:0"), ("cpu", "cpu")):
        assert model_choice(parser.parse_args(["--model", "M", "--device", given])).device == device
    monkeypatch.setenv("TOOLFORMER_MODEL_SERVER_API_KEY", "secret")
    chosen = model_choice(parser.parse_args(["--model", "M", "--server", "http://127.0.0.1:1"]))
    assert (chosen.server_key, "secret" in repr(chosen)) == ("secret", False)
    assert Shard.read(os.environ) == Shard(11, 16)
