"""Documents a second of annotating on a Ray of one and two workers beside the local pool; the cost of a killed worker.

    python -m benchmarks.jobs_on_ray [--documents 200] [--rounds 2]

Each way annotates the same documents for the calculator with the bundled model. The rate is that of the documents after
the first chunk, so it has no part of how long processes take to start; that is beside it. At half of the documents of
the last way one of its two workers is killed. Then execute, filter and merge run here and on Ray, and the script stops
if any file of a run on Ray differs from the local one.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.reports import machine, write_report
from cli.stack import services_up
from demo_world.articles import article
from training_jobs.records import Document

WAYS: Final = {
    "local, 1 worker": ["--workers", "1"],
    "local, 2 workers": ["--workers", "2"],
    "Ray, 1 worker": ["--on", "ray", "--workers", "1"],
    "Ray, 2 workers": ["--on", "ray", "--workers", "2"],
    "Ray, 1 of 2 killed": ["--on", "ray", "--workers", "2"],
}
MODEL: Final = ["--model", "models/base"]
OUTPUTS: Final = ("annotate/Calculator.jsonl", "execute/Calculator.jsonl", "score/Calculator.jsonl",
                  "filter/Calculator.jsonl", "merge/with_calls.jsonl", "merge/without_calls.jsonl")  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, compare, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--chunk", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2, help="of which the better one counts")
    options = parser.parse_args(arguments)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for number in range(options.rounds):
            for name, where in WAYS.items():
                run = write_documents(root / f"{name} {number}", options.documents)
                took = annotate(run, [*where, "--chunk", str(options.chunk)], options.documents, "killed" in name)
                found[name].append(took)
                print(f"{name}: {took}", flush=True)
        here, there = root / "local, 1 worker 0", root / "Ray, 1 of 2 killed 0"
        with services_up(["Calculator"], os.environ, log=root / "services.log") as services:
            finish(here, [], services)
            finish(there, ["--on", "ray", "--workers", "2"], services)
        for run in root.glob("* 0"):
            for output in OUTPUTS if run == there else OUTPUTS[:1]:
                if (run / output).read_bytes() != (here / output).read_bytes():
                    sys.exit(f"{run / output} differs")
    best = {name: min(rounds, key=lambda took: took["seconds"]) for name, rounds in found.items()}
    figures = {"documents": options.documents, "chunk": options.chunk, "ways": best, "same bytes": True}
    print(f"the bytes are the same; load {machine()['load average over a minute']}")
    print(write_report("jobs_on_ray", figures, ["ray", "torch"]))


def write_documents(run: Path, count: int) -> Path:
    """``run`` with a corpus of generated articles for the calculator."""
    (run / "corpus").mkdir(parents=True)
    lines = (Document(str(number), article(number, seed=1).text).to_line() for number in range(count))
    (run / "corpus" / "Calculator.jsonl").write_text("".join(lines), encoding="utf-8")
    return run


def annotate(run: Path, options: Sequence[str], documents: int, kill: bool) -> dict[str, float]:
    """Annotate ``run``: how long it took, how long until the first chunk, and the rate after that."""
    log = run / "annotate" / "Calculator.jsonl.log.jsonl"
    began, first, first_chunks, chunks = time.monotonic(), 0.0, 0, 0
    with started("annotate", run, [*MODEL, "--before-words", *options], {}) as process:
        while process.poll() is None:
            time.sleep(0.02)
            chunks = log.read_bytes().count(b"\n") if log.exists() else 0
            if chunks and not first:
                first, first_chunks = time.monotonic(), chunks
            if kill and chunks * int(options[-1]) >= documents / 2:
                os.kill(next(workers_below(process.pid)), signal.SIGKILL)
                kill = False
        ended = time.monotonic()
    rest = documents - first_chunks * int(options[-1])
    return {
        "seconds": round(ended - began, 2),
        "seconds to the first chunk": round(first - began, 2),
        "documents a second after it": round(rest / (ended - first), 2),
    }


def finish(run: Path, options: Sequence[str], environ: Mapping[str, str]) -> None:
    """Do what comes after annotating."""
    for stage, own in {"execute": [*options, "--chunk", "8"], "filter": [*MODEL, "--tau", "-100", *options]}.items():
        with started(stage, run, own, environ) as process:
            process.wait()
    with started("merge", run, [], environ) as process:
        process.wait()


@contextlib.contextmanager
def started(
    stage: str, run: Path, options: Sequence[str], environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[Any]]:
    """A stage as a process; its messages go to a file beside the run.

    Raises:
        SystemExit: it failed; with what it said.
    """
    said = run.with_name(f"{run.name} {stage}.log")
    command = [sys.executable, "-m", "cli", "jobs", stage, "--run", str(run), *options]
    with said.open("wb") as log, subprocess.Popen(command, env=os.environ | environ, stdout=log, stderr=log) as process:
        yield process
    if process.returncode:
        sys.exit(said.read_text())


def workers_below(pid: int) -> Iterator[int]:
    """The processes of Ray's actors below a process."""
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            if b"ray::_ChunkActor" in Path(f"/proc/{child}/cmdline").read_bytes():
                yield child
            yield from workers_below(child)


if __name__ == "__main__":
    main()
