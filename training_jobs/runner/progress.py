"""How far a stage is: a bar with rate and time left on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self, TypeVar

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

T = TypeVar("T")

EVERY_S: Final = 10.0
"""Seconds between two lines where no terminal shows a bar, such as in a container's log."""


class StageProgress:
    """Shows one stage; a context manager.

    Args:
        name: what is done, such as ``annotate QA``.
        total: documents (or what ``unit`` says) in all.
        completed: those done by an earlier run; they have no part in the rate.
        console: where to show it.
        clock: seconds on a clock that never goes back.
        unit: what is counted.
    """

    def __init__(
        self,
        name: str,
        total: int,
        completed: int,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
        unit: str = "documents",
    ) -> None:
        self._unit = unit
        self._name, self._total, self._completed, self._console = name, total, completed, console
        self._before = self._reported = completed
        self._clock = clock
        self._began = self._said_at = clock()
        self.counts: Counter[str] = Counter()
        self._note = ""
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TextColumn("{task.fields[status]}"), console=console, transient=False,
            )  # fmt: skip
            self._task = self._bar.add_task(escape(name), total=total, completed=completed, status="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif kind is None and self._completed > self._reported:
            self._line()

    def advance(self, documents: int, counts: Mapping[str, int], note: str = "") -> None:
        """So many more documents are done; ``counts`` is what came of them, ``note`` what else there is to say now."""
        self._note = note
        self._completed += documents
        self.counts.update(counts)
        if self._bar is not None:
            self._bar.update(self._task, completed=self._completed, status=escape(self._status()))
        elif self._clock() - self._said_at >= EVERY_S:
            self._said_at = self._clock()
            self._line()

    def say(self, message: str) -> None:
        """Print a line without tearing the bar."""
        self._console.print(f"{self._name}: {message}", markup=False, highlight=False, soft_wrap=True)

    def _line(self) -> None:
        self._reported = self._completed
        self.say(f"{self._completed:,}/{self._total:,} {self._unit}, {self._status()}")

    def _status(self) -> str:
        spent = max(self._clock() - self._began, 1e-6)
        rate = (self._completed - self._before) / spent
        left = (self._total - self._completed) / rate if rate else 0.0
        counted = [f"{number:,} {name} ({number / spent:,.1f}/s)" for name, number in self.counts.items()]
        noted = [self._note] if self._note else []
        return ", ".join([*noted, f"{rate:,.1f} {self._unit}/s", *counted, f"{_duration(left)} left"])


def shown(name: str, items: Iterable[T], total: int, unit: str = "texts") -> Iterator[T]:
    """``items``, with how many of ``total`` are done on standard error."""
    with StageProgress(name, total, 0, Console(stderr=True), unit=unit) as progress:
        for item in items:
            yield item
            progress.advance(1, {})


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
