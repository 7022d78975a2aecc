"""A file of JSON lines in chunks of a fixed number of lines: what one worker takes at a time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from training_jobs.errors import StageError


@dataclass(frozen=True, slots=True)
class Chunk:
    """``lines`` lines from ``offset`` (bytes) on; ``first_line`` counts from 1."""

    number: int
    offset: int
    first_line: int
    lines: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A file cut into chunks. How many workers there are has no part in it."""

    path: Path
    sha256: str
    lines: int
    chunks: tuple[Chunk, ...]

    def read(self, chunk: Chunk) -> list[tuple[str, bytes]]:
        """The chunk's lines, each behind where it is (``file:line``).

        Raises:
            StageError: if the file became shorter since it was planned.
        """
        with self.path.open("rb") as file:
            file.seek(chunk.offset)
            lines = [file.readline() for _ in range(chunk.lines)]
        if not lines[-1]:
            raise StageError(f"{self.path} changed while it was read: leave it alone and run again with --restart")
        return [(f"{self.path}:{chunk.first_line + number}", line) for number, line in enumerate(lines)]


def marker_of(output: Path) -> Path:
    """The file that says that ``output`` is whole, and what it was made with."""
    return output.with_name(f"{output.name}.done.json")


def _written(path: Path) -> str | None:
    """The digest of what a stage wrote at ``path``; ``None`` of any other file."""
    try:
        return str(json.loads(marker_of(path).read_bytes())["sha256"])
    except (OSError, ValueError, LookupError, TypeError):
        return None


def plan(path: Path, lines_per_chunk: int) -> Plan:
    """Read ``path`` once and cut it.

    Raises:
        StageError: if the file cannot be read, or is a stage's output and no more what that stage wrote.
    """
    digest = hashlib.sha256()
    chunks: list[Chunk] = []
    lines = offset = 0
    try:
        with path.open("rb") as file:
            start = 0
            for line in file:
                digest.update(line)
                offset += len(line)
                lines += 1
                if lines % lines_per_chunk == 0:
                    chunks.append(Chunk(len(chunks), start, lines - lines_per_chunk + 1, lines_per_chunk))
                    start = offset
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); run the stage before this one first") from error
    written = _written(path)
    if written not in (None, digest.hexdigest()):
        raise StageError(
            f"{path} is not what its stage wrote: its digest differs; run that stage again with --restart (if you "
            f"changed it yourself, remove {marker_of(path)})"
        )
    if rest := lines % lines_per_chunk:
        chunks.append(Chunk(len(chunks), start, lines - rest + 1, rest))
    return Plan(path, digest.hexdigest(), lines, tuple(chunks))
