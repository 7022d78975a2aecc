"""Tables as Markdown, for a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.tables import Table, tables


def markdown(outcomes: Sequence[Outcome], note: str = "") -> str:
    """Every table that ``outcomes`` have something for, under ``note``."""
    return "\n\n".join([*filter(None, [note]), *(_shown(table) for table in tables(outcomes))]) + "\n"


def _shown(table: Table) -> str:
    return "\n".join(_lines(table)).rstrip()


def _lines(table: Table) -> Iterator[str]:
    yield f"### {table.title}\n"
    yield _row(table.heading)
    yield "|" + "---|" * len(table.heading)
    yield from map(_row, table.rows)
    yield f"\n{table.note}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", ", ").replace("|", "\\|") for cell in cells) + " |"
