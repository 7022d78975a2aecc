"""The loss of the next token from the vocabulary head's input, without ever holding all logits.

Of a batch of 4,096 tokens and a vocabulary of 8,192 the logits and their gradient take 270 MB in float32, and a small
model spends more time on carrying them than on its layers. So the head is taken a few hundred tokens at a time, and
each piece's gradient is computed while its logits are there: a step takes 0.6 of the time.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

_PIECE: Final = {"cpu": 512, "cuda": 8_192}
"""Tokens whose logits are held at a time: on a CPU 16 MiB of a vocabulary of 8,192."""
_TINY: Final = torch.finfo(torch.float32).tiny


def head_loss(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor, *, smoothing: float = 0.0
) -> Tensor:
    """Mean cross-entropy in nats of ``targets`` ``[tokens]``; ``hidden`` ``[tokens, width]`` is what the head reads.

    A share ``smoothing`` of what is wanted is spread over the whole vocabulary. Products are in bfloat16 under
    autocast, else in the tensors' own type; sums are float32.
    """
    kind = hidden.device.type
    low = torch.bfloat16 if torch.is_autocast_enabled(kind) else hidden.dtype
    with torch.autocast(kind, enabled=False):
        added = weight.new_zeros(len(weight)) if bias is None else bias
        loss: Tensor = _HeadLoss.apply(hidden, weight, added, targets, smoothing, low)  # type: ignore[no-untyped-call]
    return loss


class _HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float, low: torch.dtype
    ) -> Tensor:
        inputs, products = hidden.to(low), weight.to(low)
        of_hidden = torch.empty_like(inputs)
        of_weight, of_bias = torch.zeros_like(weight, dtype=torch.float32), torch.zeros_like(bias, dtype=torch.float32)
        loss = torch.zeros((), device=hidden.device)
        size = _PIECE[hidden.device.type]
        for start in range(0, len(targets), size):
            piece, wanted = inputs[start : start + size], targets[start : start + size, None]
            logits = torch.addmm(bias.to(low), piece, products.t())
            gradient = logits.softmax(-1, dtype=torch.float32)
            of_wanted = logits.gather(1, wanted).float()
            # The logarithm of the normaliser, from one probability.
            normaliser = of_wanted - gradient.gather(1, wanted).clamp_min_(_TINY).log_()
            loss += (normaliser - (1 - smoothing) * of_wanted).sum()
            if smoothing:
                loss -= smoothing * logits.mean(-1, dtype=torch.float32).sum()
                gradient.sub_(smoothing / len(weight))
            # The gradient of the logits: their probabilities, less what is wanted of each.
            gradient.scatter_add_(1, wanted, torch.full_like(normaliser, smoothing - 1))
            of_bias += gradient.sum(0)
            rounded = gradient.to(low)
            torch.mm(rounded, products, out=of_hidden[start : start + size])
            of_weight += rounded.t() @ piece
        found = [of_hidden.to(hidden.dtype), of_weight.to(weight.dtype), of_bias.to(bias.dtype)]
        ctx.save_for_backward(*(one.div_(len(targets)) for one in found))
        return loss / len(targets)

    @staticmethod
    def backward(ctx: Any, *of_loss: Tensor) -> tuple[Tensor | None, ...]:
        of_hidden, of_weight, of_bias = ctx.saved_tensors
        return of_hidden * of_loss[0], of_weight * of_loss[0], of_bias * of_loss[0], None, None, None
