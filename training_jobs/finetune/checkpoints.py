"""Which checkpoints of a run are whole. The Trainer writes one file after the other, so a kill may leave half of one: a
checkpoint counts once every process has written its part and a mark is in it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Final

from training_jobs.runner.parts import write_whole

MARK: Final = "whole"
_NAME: Final = re.compile(r"checkpoint-(\d+)")


def checkpoint(out: Path, step: int) -> Path:
    """The folder of the checkpoint after so many steps."""
    return out / f"checkpoint-{step}"


def mark_whole(out: Path, step: int) -> None:
    """Say that the checkpoint is whole."""
    write_whole(checkpoint(out, step) / MARK, b"")


def whole_steps(out: Path) -> list[int]:
    """Steps with a whole checkpoint, ascending."""
    return sorted(step for step, folder in _found(out) if (folder / MARK).is_file())


def forget_halves(out: Path) -> None:
    """Remove checkpoints that a kill left half written."""
    for _, folder in _found(out):
        if not (folder / MARK).is_file():
            shutil.rmtree(folder)


def keep_only(out: Path, steps: Collection[int]) -> None:
    """Remove all checkpoints but those of ``steps``; one that a kill leaves half removed is no longer whole."""
    for step, folder in _found(out):
        if step not in steps:
            (folder / MARK).unlink(missing_ok=True)
            shutil.rmtree(folder)


def _found(out: Path) -> list[tuple[int, Path]]:
    matches = ((_NAME.fullmatch(path.name), path) for path in out.iterdir() if path.is_dir()) if out.is_dir() else ()
    return [(int(match.group(1)), path) for match, path in matches if match]
