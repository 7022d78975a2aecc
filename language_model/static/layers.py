"""A layer's weights as two matrices, and what a decode step computes before and after its attention.

A block's attention and feed-forward layer read the same normalised input and are added to the same residual, so their
first matrices can be one and their last matrices too. At few tokens a step is bound by reading weights, and two
large products read them faster than four smaller ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

if TYPE_CHECKING:
    from language_model.block import Block


class MergedLayer(NamedTuple):
    """``first`` ``[3 * n_embd + inner, n_embd]`` gives queries, keys, values and the feed-forward layer's input;
    ``last`` ``[n_embd, n_embd + inner]`` takes attention's output and the feed-forward layer's."""

    norm: Tensor
    norm_bias: Tensor
    first: Tensor
    first_bias: Tensor
    last: Tensor
    last_bias: Tensor


def merge(block: Block) -> MergedLayer:
    """The weights of ``block``, which become views of the merged ones: nothing is kept twice."""
    attention = block.qkv_proj.out_features
    first = torch.cat([block.qkv_proj.weight, block.fc_in.weight]).detach()
    block.qkv_proj.weight.data, block.fc_in.weight.data = first[:attention], first[attention:]
    last = torch.cat([block.out_proj.weight, block.fc_out.weight], dim=1).detach()
    width = block.out_proj.in_features
    block.out_proj.weight.data, block.fc_out.weight.data = last[:, :width], last[:, width:]
    bias = torch.cat([block.fc_in.bias.new_zeros(attention), block.fc_in.bias]).detach()
    return MergedLayer(
        block.ln_1.weight.detach(), block.ln_1.bias.detach(), first, bias, last, block.fc_out.bias.detach()
    )


def before_attention(
    x: Tensor, layer: MergedLayer, rotations: Tensor, heads: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Of ``x`` ``[batch, n_embd]``: rotated queries ``[batch, heads, head_dim]``, rotated keys and then values
    ``[batch, 2 * heads, head_dim]``, and the feed-forward layer's activations ``[batch, inner]``.

    ``rotations`` ``[batch, pairs, 2]`` has cosine and sine: a compiler of fused kernels takes no complex numbers."""
    batch, width = x.shape
    normed = F.layer_norm(x, (width,), layer.norm, layer.norm_bias, epsilon)
    both = F.linear(normed, layer.first, layer.first_bias)
    qkv = both[:, : 3 * width].view(batch, 3 * heads, width // heads)
    queries_keys, values = qkv[:, : 2 * heads], qkv[:, 2 * heads :]
    turned_width = 2 * rotations.shape[1]
    pairs = queries_keys[..., :turned_width].float().reshape(batch, 2 * heads, -1, 2)
    cosine, sine = rotations[:, None, :, 0], rotations[:, None, :, 1]
    real, imaginary = pairs[..., 0], pairs[..., 1]
    turned = torch.stack([real * cosine - imaginary * sine, real * sine + imaginary * cosine], dim=-1).flatten(-2)
    queries_keys = torch.cat([turned.to(x.dtype), queries_keys[..., turned_width:]], dim=-1)
    keys_values = torch.cat([queries_keys[:, heads:], values], dim=1)
    return queries_keys[:, :heads], keys_values, F.gelu(both[:, 3 * width :], approximate="tanh")


def after_attention(
    x: Tensor, attended: Tensor, log_sums: Tensor, activations: Tensor, last: Tensor, last_bias: Tensor
) -> Tensor:
    """The layer's output ``[batch, n_embd]``, from attention over pieces of the cache: ``attended`` ``[pieces, batch,
    heads, head_dim]``, each weighted by its share in the sum of the softmax, whose logarithms ``log_sums`` ``[pieces,
    batch, heads]`` are."""
    shares = torch.softmax(log_sums.float(), dim=0).unsqueeze(-1)
    joined = (attended.float() * shares).sum(dim=0).to(x.dtype).flatten(1)
    return torch.addmm(x + last_bias, torch.cat([joined, activations], dim=1), last.t())
