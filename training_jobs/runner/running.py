"""One stage from its input file to its output file: chunk by chunk, from where an earlier run was ended.

The output is a function of the input and the job's settings. Chunks do not depend on how many workers or machines there
are, a worker does one at a time, and the output is their concatenation in order: so its bytes are the same for any
number of workers, on any number of ranks, after any kill.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console

from training_jobs.errors import StageError
from training_jobs.nothing_kept import Keeping, check_kept
from training_jobs.records import RecordError
from training_jobs.runner.chunks import Plan, plan
from training_jobs.runner.on_ray import in_ray
from training_jobs.runner.parts import Parts
from training_jobs.runner.pool import ChunkDone, in_processes, in_this_process
from training_jobs.runner.progress import StageProgress
from training_jobs.runner.ranks import Shard
from training_jobs.runner.work import Job, Needs, Say

FORMAT: Final = 1
"""Goes up with a change after which half-done stages of before must not be gone on with."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What is done: ``job`` on ``source``, written to ``target``. ``name`` is for people, such as ``annotate QA``. A
    ``replaceable`` output is made again for other input or settings; of others that is refused. ``needs`` are a
    worker's, where Ray chooses its place."""

    name: str
    source: Path
    target: Path
    job: Job
    chunk_documents: int = 64
    replaceable: bool = False
    needs: Needs = field(default_factory=Needs)


@dataclass(frozen=True, slots=True)
class Running:
    """How: by so many processes, which part of the chunks, from the beginning or not, here or on Ray. By default the
    processes are this one; on Ray, as many as have room."""

    workers: int | None = None
    shard: Shard = field(default_factory=Shard)
    restart: bool = False
    on_ray: bool = False
    console: Console = field(default_factory=lambda: Console(stderr=True))


def run_stages(stages: Sequence[Stage], running: Running, keeping: Keeping | None = None) -> bool:
    """Do what is left of each stage, one after the other; whether the outputs of all are whole at the end. Of several
    ranks the one that ends last finds them whole, and looks with ``keeping`` whether anything was kept.

    Raises:
        NothingKept: if nothing was.
        StageError: what is wrong, for people. What was done stays done.
    """
    if running.restart and running.shard.world_size > 1:
        raise StageError("--restart would have each rank forget what the others did: remove the stage's folder instead")
    # What another rank was the last to do is whole only after this one has gone on.
    parts = [_run(stage, running) for stage in stages]
    whole = all(one.joined() for one in parts)
    if whole and keeping is not None:
        check_kept({stage.name: stage.target for stage in stages}, keeping, running.console)
    return whole


def _run(stage: Stage, running: Running) -> Parts:
    planned = plan(stage.source, stage.chunk_documents)
    settings = {
        "stage": stage.name,
        "format": FORMAT,
        "input": planned.sha256,
        "chunk_documents": stage.chunk_documents,
        **stage.job.settings(),
    }
    parts = Parts(stage.target, settings, len(planned.chunks))
    if running.restart or (stage.replaceable and not parts.fit()):
        parts.forget()
    if parts.finished():
        parts.sweep()
        _say(running, stage, f"{planned.lines:,} documents are done already, in {stage.target}")
        return parts
    try:
        with parts.held(running.shard.rank):
            _do_missing(stage, running, planned, parts)
            whole = parts.join()
    except FileNotFoundError:
        # Another rank joined the parts and swept up while this one looked at them.
        if not parts.finished():
            raise
        whole = True
    except RecordError as error:
        raise StageError(str(error)) from error
    if not whole:
        _say(running, stage, "done here; the rank that is the last to end joins the output")
    return parts


def _do_missing(stage: Stage, running: Running, planned: Plan, parts: Parts) -> None:
    own = [chunk for chunk in planned.chunks if running.shard.owns(chunk.number)]
    done = parts.done()
    left = [chunk.number for chunk in own if chunk.number not in done]
    completed = sum(chunk.lines for chunk in own if chunk.number in done)
    total = sum(chunk.lines for chunk in own)
    log = stage.target.with_name(f"{stage.target.name}.log.jsonl")
    with StageProgress(stage.name, total, completed, running.console) as progress, log.open("a") as notes:
        work = _Work(stage.job, planned, parts)
        events: Iterator[ChunkDone]
        workers = min(running.workers or 1, len(left))
        if not left:
            events = iter(())
        elif running.on_ray:
            events = in_ray(work, left, running.workers, stage.needs, progress.say)
        elif workers == 1:
            events = in_this_process(work, left, progress.say)
        else:
            events = in_processes(work, left, workers, progress.say)
        for event in events:
            progress.advance(event.documents, event.counts)
            note = {"chunk": event.number, "documents": event.documents, **event.counts, **event.measured}
            notes.write(json.dumps(note) + "\n")
            notes.flush()


@dataclass(frozen=True, slots=True)
class _Work:
    job: Job
    plan: Plan
    parts: Parts

    @contextlib.contextmanager
    def open(self, say: Say) -> Iterator[Callable[[int], ChunkDone]]:
        with self.job.open(say) as work:

            def do(number: int) -> ChunkDone:
                chunk = self.plan.chunks[number]
                worked = work(self.plan.read(chunk))
                self.parts.write(number, "".join(record.to_line() for record in worked.records).encode("utf-8"))
                return ChunkDone(number, chunk.lines, worked.counts, worked.measured)

            yield do


def _say(running: Running, stage: Stage, message: str) -> None:
    running.console.print(f"{stage.name}: {message}", markup=False, highlight=False, soft_wrap=True)
