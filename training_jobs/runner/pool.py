"""Worker processes, each with a pipe of its own: numbers of chunks go in, what came of them comes out.

The standard library's process pool leaves its workers behind when the process that made it is killed, and at an error
waits for every chunk under way. Here a worker ends with its parent, however that ended, and at an error all end.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from training_jobs.errors import StageError
from training_jobs.records import RecordError
from training_jobs.runner.work import Say


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """Chunk ``number`` is written."""

    number: int
    documents: int
    counts: Mapping[str, int]
    measured: Mapping[str, float]


class ChunkWork(Protocol):
    """Plain values that, in whatever process they are in, open what does a chunk, by its number, and writes it."""

    def open(self, say: Say) -> AbstractContextManager[Callable[[int], ChunkDone]]: ...


@dataclass(frozen=True, slots=True)
class _Said:
    message: str


@dataclass(frozen=True, slots=True)
class _Failed:
    message: str
    for_people: bool
    """Whether the message is for people; else it is a traceback."""


def in_this_process(work: ChunkWork, numbers: Iterable[int], say: Say) -> Iterator[ChunkDone]:
    """Do the chunks here, one after the other."""
    with work.open(say) as do:
        yield from map(do, numbers)


def in_processes(work: ChunkWork, numbers: Iterable[int], workers: int, say: Say) -> Iterator[ChunkDone]:
    """Do the chunks in ``workers`` processes; they are done in another order than asked.

    Raises:
        StageError: a worker's own, or if one ended.
        RuntimeError: with the traceback of a fault in a worker.
    """
    waiting = iter(numbers)
    context = multiprocessing.get_context("spawn")  # a fork of a process that has threads may hang
    processes: dict[Connection[Any, Any], BaseProcess] = {}
    try:
        for number in range(workers):
            ours, theirs = context.Pipe()
            process: BaseProcess = context.Process(
                target=_serve, args=(work, theirs), name=f"worker {number}", daemon=True
            )
            process.start()
            theirs.close()
            processes[ours] = process
        busy = {pipe for pipe in processes if _ask(pipe, waiting)}
        while busy:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                event = _receive(pipe, processes[pipe])
                if isinstance(event, _Said):
                    say(event.message)
                    continue
                yield event
                if not _ask(pipe, waiting):
                    busy.discard(pipe)
    finally:
        for pipe, process in processes.items():
            pipe.close()
            process.kill()  # what it may be at is of no use: parts are whole or absent
        for process in processes.values():
            process.join()


def _ask(pipe: Connection, waiting: Iterator[int]) -> bool:
    number = next(waiting, None)
    if number is None:
        return False
    with contextlib.suppress(ConnectionError):  # it ended; what is read from it next says why
        pipe.send(number)
    return True


def _receive(pipe: Connection, process: BaseProcess) -> ChunkDone | _Said:
    try:
        event: Any = pipe.recv()
    except (EOFError, ConnectionError):
        process.join()
        raise StageError(
            f"a worker process ended (exit code {process.exitcode}); if it was killed for memory, give fewer --workers "
            "or smaller chunks. Run again to go on"
        ) from None
    if isinstance(event, _Failed):
        raise StageError(event.message) if event.for_people else RuntimeError(event.message)
    assert isinstance(event, ChunkDone | _Said)
    return event


def _serve(work: ChunkWork, pipe: Connection) -> None:
    """The worker's own life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _report_failure(pipe, lambda: _do_all(work, pipe))


def _do_all(work: ChunkWork, pipe: Connection) -> None:
    with work.open(lambda message: pipe.send(_Said(message))) as do, contextlib.suppress(EOFError):
        while True:
            pipe.send(do(pipe.recv()))


def _report_failure(pipe: Connection, do: Callable[[], None]) -> None:
    try:
        do()
    except (StageError, RecordError) as error:
        pipe.send(_Failed(str(error), for_people=True))
    except Exception:
        pipe.send(_Failed(traceback.format_exc(), for_people=False))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
