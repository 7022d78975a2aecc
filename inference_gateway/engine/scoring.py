"""Log probabilities under the model's own distribution: of chosen tokens, and of a prompt's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Score(NamedTuple):
    """A token's log probability in nats, and the most likely ``(token, log probability)`` at its place."""

    logprob: float | None = None
    top: tuple[tuple[int, float], ...] = ()


UNSCORED = Score()
"""What a token gets where nobody asked, or the model gave none."""


def score(log_probabilities: Tensor, tokens: Sequence[int], top: int) -> list[Score]:
    """The scores of ``tokens``, one for each row of ``log_probabilities`` ``[len(tokens), vocabulary]``, each with its
    ``top`` most likely alternatives."""
    of_tokens = torch.tensor(tokens, device=log_probabilities.device).unsqueeze(1)
    own = log_probabilities.gather(1, of_tokens).squeeze(1).tolist()
    best = log_probabilities.topk(min(top, log_probabilities.shape[1]), dim=1)
    return [
        Score(value, tuple(zip(ids, values, strict=True)))
        for value, ids, values in zip(own, best.indices.tolist(), best.values.tolist(), strict=True)
    ]
