"""Batches made ahead of the training that needs them, in processes of their own: a GPU takes less time for a step than
one core for its batch."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, Final, TypeVar

MadeT = TypeVar("MadeT")
_AHEAD: Final = 4
"""Batches that each process is asked for before they are needed."""
_made_by: Final[list[Callable[[int], Any]]] = []
"""In a fork, what makes a batch."""


def made_ahead(make: Callable[[int], MadeT], steps: Iterable[int], workers: int) -> Generator[MadeT]:
    """What ``make`` gives for each of ``steps``, in order. With ``workers`` so many forks of this process make them,
    which must use neither a GPU nor torch's threads; until it is closed they are there."""
    if not workers:
        yield from map(make, steps)
        return
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=fork, initializer=_made_by.append, initargs=(make,)) as pool:
        waiting = deque[Future[MadeT]]()
        try:
            for step in steps:
                waiting.append(pool.submit(_make, step))
                if len(waiting) >= workers * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _make(step: int) -> Any:
    return _made_by[0](step)
