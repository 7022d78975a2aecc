"""Tables on a terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import rich.table
from rich.console import Console
from rich.markup import escape

from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.tables import Table, tables

_WIDEST: Final = 1_000


def print_tables(outcomes: Sequence[Outcome], console: Console) -> None:
    """Print every table that ``outcomes`` have something for."""
    for table in tables(outcomes):
        shown = _shown(table)
        if not console.is_terminal:
            # A pipe has no width, and 80 columns would cut the figures.
            wide = console.measure(shown, options=console.options.update(max_width=_WIDEST)).maximum
            console.width = max(console.width, wide)
        console.print(shown, crop=False, overflow="ignore", no_wrap=True)


def _shown(table: Table) -> rich.table.Table:
    words = {at for row in table.rows for at, cell in enumerate(row) if cell[:1].isalpha()}
    shown = rich.table.Table(title=escape(table.title), caption=escape(table.note) or None, title_justify="left")
    for at, heading in enumerate(table.heading):
        shown.add_column(escape(heading), justify="left" if at == 0 or at in words else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*map(escape, row))
    return shown


def markdown(outcomes: Sequence[Outcome], note: str = "") -> str:
    """Every table that ``outcomes`` have something for, under ``note``."""
    return "\n\n".join([*filter(None, [note]), *map(_markdown, tables(outcomes))]) + "\n"


def _markdown(table: Table) -> str:
    return "\n".join(_lines(table)).rstrip()


def _lines(table: Table) -> Iterator[str]:
    yield f"### {table.title}\n"
    yield _row(table.heading)
    yield "|" + "---|" * len(table.heading)
    yield from map(_row, table.rows)
    yield f"\n{table.note}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", ", ").replace("|", "\\|") for cell in cells) + " |"
