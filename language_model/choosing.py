"""Drawing tokens from a distribution."""

from __future__ import annotations

import torch
from torch import Tensor


def pick(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Tokens ``[rows, draws]``: where each of ``uniforms`` ``[rows, draws]``, numbers from 0 to below 1, falls in the
    cumulative distribution of its row of ``probabilities`` ``[rows, vocabulary]`` (float64; any positive sum).

    One number a token, and cumulation in the order of ids, keep a draw as it is under rounding that differs with what
    else runs; a sum in the order of likelihood would not, where two tokens are about as likely."""
    cumulative = probabilities.cumsum(dim=-1)
    found = torch.searchsorted(cumulative, uniforms * cumulative[:, -1:], right=True)
    return found.clamp_(max=probabilities.shape[1] - 1)  # a number just below 1 may round up to the whole sum
