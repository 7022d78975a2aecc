"""Another way to compute a step of GPT-J: compiled code (``native/``) or recorded steps on a GPU (``graphs.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from language_model.kv_cache import KVCache


class Stepper(Protocol):
    """Does the work of :meth:`~language_model.gptj.GPTJ.extend`; only that method has to be written.

    A class derives from this one and gets the rest."""

    spare_column: bool = False
    """Whether a cache needs a column that belongs to no token."""

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """As :meth:`~language_model.gptj.GPTJ.extend`; there is room in the rows, and each gets a token."""
        ...

    def prepare(self, cache: KVCache, rows: int) -> None:
        """Do now what steps of up to ``rows`` rows would else wait for at first."""
        return

    def expect(self) -> None:
        """Let what sleeps between steps wake up: one will come in a moment. Any thread may call this."""
        return
