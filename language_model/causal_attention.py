"""Causal attention of whole rows, in training on a CPU: what a token may not see is mostly not computed.

The square of scores is taken in bands of some queries, each with the keys up to its last one, which halves the products
and the softmax of long rows. Nothing but a band's weights is kept for the gradient.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it

_BAND: Final = 128
"""Queries of a band."""


def causal_attention(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attention's output ``[batch, heads, tokens, head_dim]`` of three such tensors, each token seeing itself and those
    before it. On a CPU under autocast by bands, in autocast's precision; elsewhere torch's own."""
    kind = queries.device.type
    if kind != "cpu" or not torch.is_autocast_enabled(kind):
        return F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    low = torch.get_autocast_dtype(kind)
    with torch.autocast(kind, enabled=False):
        found: Tensor = _Bands.apply(queries.to(low), keys.to(low), values.to(low))  # type: ignore[no-untyped-call]
    return found


class _Bands(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        shape = queries.shape
        scale = shape[-1] ** -0.5
        queries, keys, values = (one.reshape(-1, *shape[2:]) for one in (queries, keys, values))
        attended = torch.empty_like(queries)
        weights = []
        for start, end in _bands(shape[2]):
            scores = (queries[:, start:end] * scale) @ keys[:, :end].transpose(1, 2)
            later = torch.ones(end - start, end - start, dtype=torch.bool).triu(1)
            scores[..., start:].masked_fill_(later, -torch.inf)
            weights.append(scores.softmax(-1))
            attended[:, start:end] = weights[-1] @ values[:, :end]
        ctx.save_for_backward(queries, keys, values, *weights)
        return attended.view(shape)

    @staticmethod
    def backward(ctx: Any, *of_output: Tensor) -> tuple[Tensor, ...]:
        queries, keys, values, *weights = ctx.saved_tensors
        shape = of_output[0].shape
        scale = shape[-1] ** -0.5
        of_attended = of_output[0].reshape(queries.shape)
        of_queries, of_keys, of_values = torch.empty_like(queries), torch.zeros_like(keys), torch.zeros_like(values)
        for (start, end), band in zip(_bands(shape[2]), weights, strict=True):
            gradient = of_attended[:, start:end]
            of_values[:, :end] += band.transpose(1, 2) @ gradient
            of_band = gradient @ values[:, :end].transpose(1, 2)
            of_scores = torch._softmax_backward_data(of_band, band, -1, band.dtype) * scale
            of_queries[:, start:end] = of_scores @ keys[:, :end]
            of_keys[:, :end] += of_scores.transpose(1, 2) @ queries[:, start:end]
        return of_queries.view(shape), of_keys.view(shape), of_values.view(shape)


def _bands(tokens: int) -> list[tuple[int, int]]:
    return [(start, min(tokens, start + _BAND)) for start in range(0, tokens, _BAND)]
