"""Where new tokens go in a cache, and what they see of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from language_model.kv_cache import KVCache


@dataclass(frozen=True, slots=True)
class Where:
    """Where new tokens go in a cache: its ``rows`` as an index, ``row_of`` ``[batch, 1]`` and ``columns`` ``[batch,
    tokens]`` of each token, and the ``length`` of the longest row with them."""

    rows: slice | Tensor
    row_of: Tensor
    columns: Tensor
    length: int


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that get the same number of tokens, and so attend together.

    ``begins``: all of them were empty. ``even``: all of them were of one length."""

    where: Where
    begins: bool
    even: bool

    @classmethod
    def of(cls, cache: KVCache, rows: Sequence[int], tokens: int) -> Run:
        """The next ``tokens`` places of each of ``rows``; neighbouring, ascending rows are read in place, others are
        gathered first."""
        device = cache.tokens.device
        starts = [cache.lengths[row] for row in rows]
        columns = torch.tensor([range(start, start + tokens) for start in starts], device=device)
        row_of = torch.tensor([[row] for row in rows], device=device)
        neighbours = list(rows) == list(range(rows[0], rows[0] + len(rows)))
        index = slice(rows[0], rows[0] + len(rows)) if neighbours else row_of.squeeze(1)
        where = Where(index, row_of, columns, max(starts) + tokens)
        return cls(where, begins=not any(starts), even=len(set(starts)) == 1)

    def sight(self, window: int | None = None) -> tuple[Tensor | None, bool]:
        """The mask ``[batch, 1, tokens, length]`` by which the tokens see those before them, if they need one; and
        whether they are plainly causal, which has the faster kernel. ``window``: a token sees itself and no more than
        ``window - 1`` before it."""
        columns, length = self.where.columns, self.where.length
        narrow = window is not None and length > window
        tokens = columns.shape[1]
        if not narrow and self.begins and tokens > 1:
            return None, True
        if not narrow and self.even and tokens == 1:
            return None, False
        places = torch.arange(length, device=columns.device)
        newest = columns.unsqueeze(-1)
        seen = places <= newest
        if window is not None and narrow:
            seen &= places > newest - window
        return seen.unsqueeze(1), False
