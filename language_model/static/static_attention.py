"""Attention of one new token a row over what the rows' cache holds, cut into pieces so that a GPU is busy.

With one row of 16 heads, 16 of a GPU's hundred and more processors would read all the keys and values. Each piece of
a row's tokens is attended to by itself; the logarithms of the softmax's sums say how to weigh the pieces (Dao et al.,
2023, "Flash-Decoding")."""

from __future__ import annotations

from typing import Final, cast

import torch
from torch import Tensor

PIECE: Final = 128
"""Tokens of a piece."""

_ENOUGH: Final = 128
"""Rows times heads from which on a GPU is busy without pieces."""


def pieces_of(rows: int, heads: int, length: int) -> int:
    """Into how many pieces ``length`` tokens of each row are cut."""
    return 1 if rows * heads >= _ENOUGH or length % PIECE else length // PIECE


def attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor, pieces: int) -> tuple[Tensor, Tensor]:
    """Attention of ``queries`` ``[rows, heads, head_dim]`` over ``pieces`` equal parts of ``keys`` and ``values``
    ``[rows, heads, length, head_dim]``; ``bias`` ``[rows, 1, 1, length]`` is added to the scores.

    Returns what each part gives, ``[pieces, rows, heads, head_dim]``, and the logarithm of its softmax's sum,
    ``[pieces, rows, heads]``.
    """
    queries = queries.unsqueeze(2)
    if pieces == 1:
        attended, log_sums = _attend(queries, keys, values, bias)
        return attended.unsqueeze(0), log_sums.unsqueeze(0)
    parts = []
    for row in range(len(queries)):  # few: with many rows there are no pieces
        own = queries[row].expand(pieces, -1, -1, -1)
        of_keys, of_values = (_cut(side[row], pieces) for side in (keys, values))
        parts.append(_attend(own, of_keys, of_values, bias[row].view(pieces, 1, 1, -1)))
    return torch.stack([attended for attended, _ in parts], dim=1), torch.stack([sums for _, sums in parts], dim=1)


def _cut(side: Tensor, pieces: int) -> Tensor:
    """``[heads, length, head_dim]`` as ``[pieces, heads, length / pieces, head_dim]``, in place."""
    heads, length, width = side.shape
    return side.view(heads, pieces, length // pieces, width).transpose(0, 1)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """``[batch, heads, head_dim]`` and the sums' logarithms ``[batch, heads]``."""
    if queries.is_cuda:
        batch, heads, _, _ = queries.shape
        # The kernel behind torch's scaled_dot_product_attention, which alone tells the sums. It pads them.
        attended, log_sums, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
            queries, keys, values, bias.expand(batch, heads, 1, -1), True
        )
        return cast(Tensor, attended)[:, :, 0], cast(Tensor, log_sums)[:, :, 0]
    scores = (queries @ keys.transpose(2, 3)).float() * queries.shape[-1] ** -0.5 + bias.float()
    return (torch.softmax(scores, dim=-1).to(values.dtype) @ values)[:, :, 0], torch.logsumexp(scores, dim=-1)[:, :, 0]
