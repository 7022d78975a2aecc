"""The weighted loss ``L_i(z)`` (section 2 of the paper, "Filtering API Calls")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

WINDOW: Final = 5
"""Tokens from a position on that its loss looks at: the others' weights are 0."""

_UNSCALED: Final = tuple(max(0.0, 1 - 0.2 * t) for t in range(WINDOW))

WEIGHTS: Final = tuple(weight / sum(_UNSCALED) for weight in _UNSCALED)
"""``w_t`` of ``t = 0, 1, ...``: 1/3, 4/15, 1/5, 2/15, 1/15."""


def window(position: int, tokens: int) -> range:
    """The tokens that the loss of ``position`` looks at in a text of so many tokens: fewer than five at its end."""
    return range(position, min(position + WINDOW, tokens))


def weighted_loss(position: int, tokens: Sequence[int], log_probabilities: Sequence[float]) -> float:
    """``L_i`` in nats: ``tokens`` of the window of ``position`` (those that are scored), and their log probabilities.

    At the end of a text the weights stay as they are, so a loss over fewer tokens is smaller."""
    pairs = zip(tokens, log_probabilities, strict=True)
    return -sum(WEIGHTS[token - position] * value for token, value in pairs)
