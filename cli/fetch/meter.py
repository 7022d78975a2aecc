"""How far a download is: a bar on a terminal, elsewhere a line every ten seconds."""

from __future__ import annotations

import time
from typing import Final

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

EVERY_S: Final = 10.0


class Meter(Progress):
    """Counts bytes from any thread; ``total`` is ``None`` where nobody knows it."""

    def __init__(self, console: Console, name: str, total: int | None) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        super().__init__(*columns, console=console, disable=not console.is_terminal)
        self._bytes = self.add_task(name, total=total)
        self._shown_at = time.monotonic()

    def more(self, count: int) -> None:
        """So many bytes more are there."""
        self.advance(self._bytes, count)
        if self.disable and time.monotonic() - self._shown_at >= EVERY_S:
            self._shown_at = time.monotonic()
            [task] = self.tasks
            whole = "" if task.total is None else f" of {decimal(int(task.total))}"
            left = "" if task.time_remaining is None else f", {task.time_remaining / 60:,.0f} min left"
            line = f"{task.description}: {decimal(int(task.completed))}{whole}, {decimal(int(task.speed or 0))}/s{left}"
            self.console.print(line, markup=False, highlight=False, soft_wrap=True)
