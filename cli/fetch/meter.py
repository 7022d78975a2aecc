"""How far a download is: a bar on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

EVERY_S: Final = 10.0


class Meter:
    """Counts bytes from any thread; ``total`` is ``None`` where nobody knows it."""

    def __init__(
        self, console: Console, name: str, total: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._name, self._total, self._clock = console, name, total, clock
        self._lock = threading.Lock()
        self._done = 0
        self._fresh = 0
        self._began = self._said_at = clock()
        self._bar: Progress | None = None
        if console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
                TimeRemainingColumn(), console=console,
            )  # fmt: skip
            self._task = self._bar.add_task(name, total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, more: int, fresh: bool) -> None:
        """So many bytes more are there; not ``fresh`` are those that an earlier run brought, which make no rate."""
        with self._lock:
            self._done += more
            self._fresh += more if fresh else 0
            if self._bar is not None:
                self._bar.update(self._task, completed=self._done)
            elif self._clock() - self._said_at >= EVERY_S:
                self._said_at = self._clock()
                self._line()

    def _line(self) -> None:
        rate = max(self._fresh, 0) / max(self._clock() - self._began, 1e-6)
        whole = "" if self._total is None else f" of {decimal(self._total)}"
        told = f"{decimal(self._done)}{whole}, {decimal(int(rate))}/s"
        if self._total is not None and rate > 0:
            told += f", {(self._total - self._done) / rate / 60:,.0f} min left"
        self._console.print(f"{self._name}: {told}", markup=False, highlight=False, soft_wrap=True)
