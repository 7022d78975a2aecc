"""Which part of a stage is this process' own, where several share it.

Kubernetes numbers the pods of an Indexed Job in ``JOB_COMPLETION_INDEX``, Slurm its tasks in ``SLURM_PROCID``; others
set ``RANK``. How many there are says ``WORLD_SIZE`` or ``SLURM_NTASKS``; Kubernetes sets no variable for that, so a
Job's manifest gives ``WORLD_SIZE`` beside ``completions``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from training_jobs.errors import StageError

_RANK: Final = ("RANK", "JOB_COMPLETION_INDEX", "SLURM_PROCID")
_SIZE: Final = ("WORLD_SIZE", "SLURM_NTASKS")


@dataclass(frozen=True, slots=True)
class Shard:
    """The chunks ``rank``, ``rank + world_size``, ... of a stage.

    Raises:
        StageError: if ``rank`` is not from 0 to ``world_size - 1``.
    """

    rank: int = 0
    world_size: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world_size:
            raise StageError(f"rank {self.rank} of {self.world_size}: ranks count from 0 to one less than world size")

    @classmethod
    def read(cls, environ: Mapping[str, str], rank: int | None = None, world_size: int | None = None) -> Self:
        """What is given, else what the environment says; alone where it says nothing.

        Raises:
            StageError: if a variable is no number, or there is a rank and nothing says of how many.
        """
        own = rank if rank is not None else _number(environ, _RANK)
        size = world_size if world_size is not None else _number(environ, _SIZE)
        if own is not None and size is None:
            named = next((name for name in _RANK if environ.get(name)), "--rank")
            raise StageError(f"{named} says rank {own} but nothing says of how many: set WORLD_SIZE or --world-size")
        if own is None and size is not None and size > 1:
            raise StageError(f"there are {size} processes but nothing says which this is: set RANK or --rank")
        return cls(own or 0, size or 1)

    def owns(self, number: int) -> bool:
        """Whether chunk ``number`` is this process' own."""
        return number % self.world_size == self.rank


def _number(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        if value := environ.get(name, "").strip():
            if value.isascii() and value.isdigit():
                return int(value)
            raise StageError(f"{name}: {value!r} is not a number from 0 on; correct or unset it")
    return None
