"""Which row of the cache holds what: tokens of sequences, and tokens kept for requests that begin alike.

The decoding sequences have the first rows, so that a step reads the cache in place instead of gathering it; one that
pauses or ends swaps places with the last of them. All other rows are in no order: held by a sequence that does not
decode now, kept (what a sequence left behind), or empty."""

from __future__ import annotations

import itertools
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import Final

from inference_gateway.engine.sequence import Sequence
from language_model.causal_lm import Cache

WORTH_SHARING: Final = 8
"""Tokens in common from which on a row is copied or taken over: fewer are as quickly computed."""


@dataclass(slots=True)
class Row:
    """``tokens`` are those whose keys and values the cache has; ``owner`` is ``None`` for a kept or empty row;
    ``used`` orders kept rows by when they were last of use."""

    tokens: list[int] = field(default_factory=list)
    owner: Sequence | None = None
    used: int = 0


class RowTable:
    """Gives rows of ``cache`` to sequences."""

    def __init__(self, cache: Cache, *, keep: bool = True) -> None:
        """``keep``: whether what sequences leave behind is kept."""
        self._cache = cache
        self._keep = keep
        self._rows = [Row() for _ in range(cache.rows)]
        self._decoding = 0
        self._clock = itertools.count(1)

    @property
    def decoding(self) -> list[Sequence]:
        """Sequences that take part in the next decode step, in the order of their rows ``0, 1, ...``."""
        return [row.owner for row in self._rows[: self._decoding] if row.owner is not None]

    @property
    def available(self) -> bool:
        """Whether a row is available."""
        return any(row.owner is None for row in self._rows)

    @property
    def total(self) -> int:
        """Tokens in the cache."""
        return sum(self._cache.lengths)

    @property
    def kept(self) -> int:
        """Tokens in the cache that belong to no sequence."""
        return sum(len(row.tokens) for row in self._rows if row.owner is None)

    def held(self, sequence: Sequence) -> int:
        """How many tokens of ``sequence`` the cache has."""
        return self._cache.lengths[sequence.row] if sequence.row >= 0 else 0

    # A sequence's way ----------------------------------------------------------------------------------------------

    def take(self, sequence: Sequence, ids: Many[int]) -> int:
        """Give ``sequence`` a row with as many of ``ids`` as any row begins with; how many these are.

        Where a kept row has them it is taken over, if more of it is shared than would be lost; else they are copied.

        Raises:
            RuntimeError: if no row is available.
        """
        donor, shared = self._most_alike(ids)
        place = self._place(donor, shared)
        if shared and place != donor:
            self._cache.copy(donor, place, shared)
            self._rows[place].tokens = self._rows[donor].tokens[:shared]
            self._rows[donor].used = next(self._clock)
        else:
            self._cut(place, shared)
        self._rows[place].owner, sequence.row = sequence, place
        # Behind the decoding rows, where it will be wanted: now there is least to copy.
        nearest = next(at for at in range(self._decoding, place + 1) if at == place or self._rows[at].owner is None)
        self._swap(place, nearest)
        return shared

    def decode(self, sequence: Sequence) -> None:
        """Move a held sequence among the decoding ones."""
        if sequence.row >= self._decoding:
            self._swap(sequence.row, self._decoding)
            self._decoding += 1

    def hold(self, sequence: Sequence) -> None:
        """Take a sequence out of decoding; its row keeps all it holds."""
        if 0 <= sequence.row < self._decoding:
            self._decoding -= 1
            self._swap(sequence.row, self._decoding)

    def leave(self, sequence: Sequence, *, keep: bool = True) -> None:
        """Take the sequence's row away; what it holds is kept, or forgotten if ``keep`` is false. Safe to repeat."""
        if sequence.row < 0:
            return
        self.hold(sequence)
        row = self._rows[sequence.row]
        row.owner, row.used = None, next(self._clock)
        if not (keep and self._keep):
            self._cut(sequence.row, 0)
        sequence.row = -1

    def extended(self, sequence: Sequence, ids: Many[int]) -> None:
        """The model has put ``ids`` behind what the sequence's row held."""
        self._rows[sequence.row].tokens += ids

    def cut(self, sequence: Sequence, length: int) -> None:
        """Forget all but the first ``length`` tokens of the sequence's row."""
        self._cut(sequence.row, length)

    def shrink_kept(self, tokens: int) -> bool:
        """Forget up to that many tokens from the end of the kept row that was of use the longest ago; false if nothing
        is kept."""
        rows = [at for at, row in enumerate(self._rows) if row.owner is None and row.tokens]
        if not rows:
            return False
        oldest = min(rows, key=lambda at: self._rows[at].used)
        left = len(self._rows[oldest].tokens) - tokens
        self._cut(oldest, left if left >= WORTH_SHARING else 0)
        return True

    # Inside --------------------------------------------------------------------------------------------------------

    def _most_alike(self, ids: Many[int]) -> tuple[int, int]:
        """The row that shares the longest beginning with ``ids``, and its length; 0 if none is worth sharing."""
        best, shared = -1, 0
        for at, row in enumerate(self._rows):
            longer = len(row.tokens) > shared < len(ids) and row.tokens[shared] == ids[shared]
            if longer and (common := common_prefix(row.tokens, ids)) > shared:
                best, shared = at, common
        return (best, shared) if shared >= WORTH_SHARING else (-1, 0)

    def _place(self, donor: int, shared: int) -> int:
        """The row to use: the donor itself, an empty one, or the kept one that was of use the longest ago."""
        free = [at for at, row in enumerate(self._rows) if row.owner is None]
        if not free:
            raise RuntimeError("no row can be had")
        if donor in free and (len(self._rows[donor].tokens) <= 2 * shared or len(free) == 1):
            return donor
        return min(
            (at for at in free if at != donor), key=lambda at: (bool(self._rows[at].tokens), self._rows[at].used)
        )

    def _cut(self, at: int, length: int) -> None:
        self._cache.cut(at, length)
        del self._rows[at].tokens[length:]

    def _swap(self, first: int, second: int) -> None:
        if first == second:
            return
        self._cache.swap(first, second)
        rows = self._rows
        rows[first], rows[second] = rows[second], rows[first]
        for at in (first, second):
            if (owner := rows[at].owner) is not None:
                owner.row = at


def common_prefix(first: Many[int], second: Many[int]) -> int:
    """How many tokens two lists begin with in common."""
    low, high = 0, min(len(first), len(second))
    first, second = list(first[:high]), list(second[:high])
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
