"""What a stage does with documents, independent of who runs it: the runner knows jobs by this alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from training_jobs.records import Record


@dataclass(frozen=True, slots=True)
class Needs:
    """What a worker takes of a machine while it works."""

    processors: int = 1
    gpus: int = 0


Say = Callable[[str], None]
"""Shows people one line."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of a chunk: its records in order, and counts for the display."""

    records: Sequence[Record]
    counts: Mapping[str, int] = field(default_factory=dict)
    measured: Mapping[str, float] = field(default_factory=dict)
    """Figures that are another at each run, such as seconds: for ``OUT.jsonl.log.jsonl``, never for the output."""


Lines = Sequence[tuple[str, bytes]]
"""The lines of a chunk, each behind its place (``file:line``)."""

Worker = Callable[[Lines], Worked]
"""Does a chunk: a function of its lines and the job alone.

Raises:
    StageError: if it cannot be done.
    RecordError: if a line is not the record it should be.
"""


class Job(Protocol):
    """A stage's work as plain values, which travel to worker processes."""

    def settings(self) -> Mapping[str, Any]:
        """What the output depends on besides the input, as JSON."""
        ...

    def open(self, say: Say) -> AbstractContextManager[Worker]:
        """A worker in this process; until the block ends it holds what takes long to load.

        Raises:
            StageError: if something it needs is missing.
        """
        ...
