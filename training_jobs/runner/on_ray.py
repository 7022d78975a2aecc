"""Chunks on Ray: on a cluster, or on this machine's own Ray, which is started where there is no other.

A worker is an actor: it loads what takes long once, then does chunk after chunk. Ray starts it where the processors and
GPUs that it needs are free; one for which nothing is free yet joins later. A chunk whose worker is lost, with its
process or its machine, goes to the next worker that is free, and a new worker is started.

Ray carries only the work's plain values and the numbers of chunks. Lines are read and written in the run's folder,
which all machines share under one path.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from training_jobs.errors import StageError
from training_jobs.records import RecordError
from training_jobs.runner.pool import ChunkDone, ChunkWork
from training_jobs.runner.work import Needs, Say

LOSSES: Final = 3
"""So often a chunk may lose its worker; so many workers in a row may be lost before they are ready."""
_REMEDY: Final = "If it was killed for memory, give fewer --workers or smaller chunks. Run again to go on"


def in_ray(work: ChunkWork, numbers: Iterable[int], workers: int | None, needs: Needs, say: Say) -> Iterator[ChunkDone]:
    """Do the chunks by ``workers`` workers (by default as many as Ray has room for), each with what it ``needs``; they
    are done in another order than asked.

    Raises:
        StageError: a worker's own; or Ray is missing, has no room, or loses workers again and again.
        RuntimeError: with the traceback of a fault in a worker.
    """
    ray = connected()
    waiting = deque(numbers)
    lost: Counter[int | None] = Counter()
    with _Workers(ray, work, needs) as crew:
        for _ in range(min(len(waiting), workers or _room(ray, needs))):
            crew.start()
        while waiting or crew.busy:
            while waiting and crew.free:
                crew.give(waiting.popleft())
            try:
                done = crew.next()
            except _WorkerLost as loss:
                lost[loss.number] += 1
                if lost[loss.number] == LOSSES:
                    raise StageError(f"{loss}, {LOSSES} times now. {_REMEDY}") from None
                say(f"{loss}; another takes its place")
                if loss.number is not None:
                    waiting.appendleft(loss.number)
                crew.start()
                continue
            if done is None:
                del lost[None]
            else:
                yield done


def connected() -> Any:
    """The package ``ray``, connected: to the cluster of ``RAY_ADDRESS`` or that was started on this machine; else to
    one that is started now and ends with this process.

    Raises:
        StageError: if Ray is not installed, does not start within the 30 s that it gives itself, or does not answer.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise StageError(f"--on ray: {error}; install the extra `ray`: pip install 'toolformer[ray]'") from None
    if not ray.is_initialized():
        try:
            ray.init(include_dashboard=False, logging_level="warning")
        except Exception as error:  # Ray has no class of its own for it
            remedy = "run again to go on (RAY_AUTH_MODE=token where the cluster asks for its token)"
            raise StageError(f"--on ray: Ray does not start or answer; {remedy}: {error}") from error
    return ray


def _room(ray: Any, needs: Needs) -> int:
    """How many workers have room on all machines together."""
    total = ray.cluster_resources()
    room = int(total.get("CPU", 0) // needs.processors)
    if needs.gpus:
        room = min(room, int(total.get("GPU", 0) // needs.gpus))
    if not room:
        raise StageError(
            f"--on ray: a worker needs {needs.processors} CPUs and {needs.gpus} GPUs, Ray has {total.get('CPU', 0):g} "
            f"and {total.get('GPU', 0):g}; add machines, or give --workers to wait for them"
        )
    return room


class _WorkerLost(Exception):  # noqa: N818 - reads as what happened
    """A worker is no more. ``number`` is the chunk that it was at, ``None`` if it was not ready yet."""

    def __init__(self, number: int | None, error: Exception) -> None:
        at = "a worker was lost before it was ready" if number is None else f"chunk {number} lost its worker"
        super().__init__(f"{at} ({str(error).strip().splitlines()[-1].rstrip('.')})")
        self.number = number


class _Workers:
    """The actors; a context manager that ends them."""

    def __init__(self, ray: Any, work: ChunkWork, needs: Needs) -> None:
        self.free: list[Any] = []
        self._ray = ray
        self._actor_class = ray.remote(num_cpus=needs.processors, num_gpus=needs.gpus)(_ChunkActor)
        self._given = ray.put(work), str(Path.cwd())
        self._asked: dict[Any, tuple[Any, int | None]] = {}
        """The actor and the chunk behind each answer that is to come; no chunk where the actor gets ready."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for actor in [*self.free, *(actor for actor, _ in self._asked.values())]:
            self._ray.kill(actor)  # what it may be at is of no use: parts are whole or absent

    @property
    def busy(self) -> bool:
        """Whether a chunk is being done."""
        return any(number is not None for _, number in self._asked.values())

    def start(self) -> None:
        """Let one more worker get ready."""
        actor = self._actor_class.remote(*self._given)
        self._asked[actor.open.remote()] = actor, None

    def give(self, number: int) -> None:
        """Have one that is free do chunk ``number``."""
        actor = self.free.pop()
        self._asked[actor.do.remote(number)] = actor, number

    def next(self) -> ChunkDone | None:
        """What is done next; ``None``: a worker got ready. Its worker is free.

        Raises:
            _WorkerLost: one was lost instead.
            StageError, RecordError, RuntimeError: what a worker raised.
        """
        [answer], _ = self._ray.wait(list(self._asked))
        actor, number = self._asked.pop(answer)
        try:
            done: ChunkDone | None = self._ray.get(answer)
        except self._ray.exceptions.RayTaskError as error:
            self.free.append(actor)
            if isinstance(error.cause, StageError | RecordError):
                raise error.cause from None
            raise RuntimeError(str(error)) from None
        except self._ray.exceptions.RayError as error:
            self._ray.kill(actor)  # it may be out of reach only
            raise _WorkerLost(number, error) from None
        self.free.append(actor)
        return done


class _ChunkActor:
    """A worker's own life. ``folder`` is the driver's, so that relative paths mean the same."""

    def __init__(self, work: ChunkWork, folder: str) -> None:
        with contextlib.suppress(OSError):  # where it is not, absolute paths may still be found
            os.chdir(folder)
        self._work = work
        self._until_killed = contextlib.ExitStack()

    def open(self) -> None:
        """Load what takes long."""
        self._do: Callable[[int], ChunkDone] = self._until_killed.enter_context(self._work.open(_say_to_driver))

    def do(self, number: int) -> ChunkDone:
        """Do chunk ``number``."""
        return self._do(number)


def _say_to_driver(message: str) -> None:
    print(message, file=sys.stderr, flush=True)  # Ray shows it where the command runs, behind the worker's name
