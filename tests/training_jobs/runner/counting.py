"""A stage that needs no model: counts words, slowly."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from training_jobs.errors import StageError
from training_jobs.records import Document, Record
from training_jobs.runner.running import Running, Stage, run_stages
from training_jobs.runner.work import Lines, Say, Worked, Worker


@dataclass(frozen=True, slots=True)
class Counted(Record):
    id: str
    words: int


@dataclass(frozen=True, slots=True)
class CountJob:
    """``pause`` seconds a document; ``bad`` is the id of a document it cannot do, ``deadly`` of one that kills it."""

    pause: float = 0.0
    bad: str = ""
    deadly: str = ""

    def settings(self) -> dict[str, Any]:
        return {"counts": "words"}

    @contextlib.contextmanager
    def open(self, say: Say) -> Iterator[Worker]:
        say("opened")
        yield self._work

    def _work(self, lines: Lines) -> Worked:
        records = []
        for where, line in lines:
            time.sleep(self.pause)
            document = Document.from_line(line, where)
            if document.id == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            if document.id == self.bad:
                raise StageError(f"{where}: {document.id} cannot be counted")
            records.append(Counted(document.id, len(document.text.split())))
        return Worked(records, {"words": sum(record.words for record in records)}, {"seconds": 0.0})


def corpus(path: Path, documents: int) -> Path:
    """A file of documents of different lengths."""
    lines = (Document(f"d{number}", "ö " * (number % 7 + 1)).to_line() for number in range(documents))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def count(
    source: Path,
    target: Path,
    *,
    job: CountJob | None = None,
    chunk: int = 3,
    console: Console | None = None,
    **how: Any,
) -> bool:
    """Run the stage."""
    running = Running(console=console or Console(quiet=True), **how)
    return run_stages([Stage("count", source, target, job or CountJob(), chunk)], running)


def main(arguments: Sequence[str]) -> None:
    """Count slowly: the file of documents, the output, the number of workers; or on Ray, with a bad document and a
    deadly one."""
    source, target, workers, *on_ray = arguments
    how: dict[str, Any] = {"on_ray": True, "console": Console()} if on_ray else {}
    try:
        count(Path(source), Path(target), job=CountJob(0.004, *on_ray), workers=int(workers), **how)
    except StageError as trouble:
        sys.exit(str(trouble))
