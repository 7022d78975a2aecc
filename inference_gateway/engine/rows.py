"""Which sequence has which row of the cache.

Rows lie in three runs: decoding ``[0, r)``, held ``[r, r + h)`` (waiting for their first step, or for a tool),
free. The decoding rows are neighbours, so that a step reads the cache in place instead of gathering it; a sequence
that pauses or ends swaps places with the last of them. A swap costs one copy of two rows, once a pause, where a
gather would cost a copy of all rows at every token."""

from __future__ import annotations

from inference_gateway.engine.sequence import Sequence
from language_model.kv_cache import KVCache


class RowTable:
    """Places sequences in the rows of ``cache`` and keeps the decoding ones together at the front."""

    def __init__(self, cache: KVCache) -> None:
        self._cache = cache
        self._at: list[Sequence] = []
        self._decoding = 0

    @property
    def decoding(self) -> list[Sequence]:
        """Sequences that take part in the next decode step, in the order of their rows ``0, 1, ...``."""
        return self._at[: self._decoding]

    @property
    def held(self) -> int:
        """How many sequences have a row without decoding."""
        return len(self._at) - self._decoding

    @property
    def full(self) -> bool:
        return len(self._at) == self._cache.rows

    def __len__(self) -> int:
        return len(self._at)

    def add(self, sequence: Sequence) -> None:
        """Give ``sequence`` a free, empty row; it is held.

        Raises:
            RuntimeError: if no row is free.
        """
        if self.full:
            raise RuntimeError("no free row")
        sequence.row = len(self._at)
        self._at.append(sequence)
        self._cache.cut(sequence.row, 0)

    def decode(self, sequence: Sequence) -> None:
        """Move a held sequence among the decoding ones."""
        if sequence.row >= self._decoding:
            self._swap(sequence.row, self._decoding)
            self._decoding += 1

    def hold(self, sequence: Sequence) -> None:
        """Take a sequence out of decoding; its row keeps all it holds."""
        if sequence.row < self._decoding:
            self._decoding -= 1
            self._swap(sequence.row, self._decoding)

    def remove(self, sequence: Sequence) -> None:
        """Free the sequence's row."""
        self.hold(sequence)
        last = len(self._at) - 1
        self._swap(sequence.row, last)
        self._cache.cut(last, 0)
        self._at.pop()
        sequence.row = -1

    def _swap(self, first: int, second: int) -> None:
        self._cache.swap(first, second)
        at = self._at
        at[first], at[second] = at[second], at[first]
        at[first].row, at[second].row = first, second
