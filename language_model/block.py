"""A layer of GPT-J, its rotary positions, and how new tokens go through it into a cache."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from language_model.config import GPTJConfig
from language_model.kv_cache import KVCache
from language_model.where import Where


def rotation_table(config: GPTJConfig, device: torch.device | str = "cpu") -> Tensor:
    """Rotary position embedding as unit complex numbers ``[n_positions, rotary_dim / 2]`` (Su et al., 2021).

    GPT-J rotates neighbouring pairs of dimensions, so a pair is a complex number and a rotation is one product.
    """
    exponents = torch.arange(0, config.rotary_dim, 2, dtype=torch.float32, device=device) / config.rotary_dim
    angles = torch.outer(torch.arange(config.n_positions, dtype=torch.float32, device=device), 10000.0**-exponents)
    return torch.polar(torch.ones_like(angles), angles)


def rotate(x: Tensor, rotations: Tensor) -> Tensor:
    """Rotate the first dimensions of ``x`` ``[batch, tokens, heads, head_dim]`` by ``rotations`` ``[batch or 1,
    tokens, pairs]``."""
    width = 2 * rotations.shape[-1]
    pairs, turns = x[..., :width].float().reshape(*x.shape[:-1], -1, 2), rotations.unsqueeze(2)
    if x.device.type == "cuda":
        turned = turned_as_reals(pairs, turns)
    else:
        turned = torch.view_as_real(torch.view_as_complex(pairs) * turns)
    return torch.cat([turned.flatten(-2).to(x.dtype), x[..., width:]], dim=-1)


def turned_as_reals(pairs: Tensor, turns: Tensor) -> Tensor:
    """The product of complex numbers, the first given as pairs of reals: what compiles to a GPU's kernels has no
    complex ones."""
    (even, odd), (cosine, sine) = pairs.unbind(-1), torch.view_as_real(turns).unbind(-1)
    return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1)


def rotate_in_place(x: Tensor, rotations: Tensor) -> None:
    """As :func:`rotate`, into ``x`` itself: for inference, where a token's time goes into the number of operations."""
    turned = x[..., : 2 * rotations.shape[-1]]
    if x.dtype == torch.float32:
        torch.view_as_complex(turned.view(*turned.shape[:-1], -1, 2)).mul_(rotations.unsqueeze(2))
    else:
        turned.copy_(rotate(turned, rotations))


class Block(nn.Module):
    """One layer of GPT-J: ``x + attention(norm(x)) + feed_forward(norm(x))``."""

    def __init__(self, config: GPTJConfig) -> None:
        super().__init__()
        self.heads, self.width = config.n_head, config.head_dim
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.qkv_proj = nn.Linear(config.n_embd, 3 * config.n_embd, bias=False)
        self.out_proj = nn.Linear(config.n_embd, config.n_embd, bias=False)
        self.fc_in = nn.Linear(config.n_embd, config.inner_dim)
        self.fc_out = nn.Linear(config.inner_dim, config.n_embd)

    def project(self, normed: Tensor, rotations: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys (both rotated) and values ``[batch, heads, tokens, head_dim]`` of ``normed``."""
        batch, tokens, _ = normed.shape
        qkv = self.qkv_proj(normed).view(batch, tokens, 3 * self.heads, self.width)
        queries_keys, values = qkv.split([2 * self.heads, self.heads], dim=2)
        turned = rotate(queries_keys, rotations).transpose(1, 2)
        return turned[:, : self.heads], turned[:, self.heads :], values.transpose(1, 2)

    def extend(
        self, x: Tensor, rotations: Tensor, cache: KVCache, layer: int, where: Where, mask: Tensor | None, causal: bool
    ) -> Tensor:
        """The layer's output for new tokens ``x`` ``[batch * tokens, n_embd]``, which join the cache.

        The same arithmetic as :meth:`project` and :meth:`finish`, in as few operations as it takes and past the
        modules' own ``__call__``: of a single token's step on a CPU, more than half is overhead of that kind.
        """
        batch, tokens = where.columns.shape
        normed = F.layer_norm(x, self.ln_1.normalized_shape, self.ln_1.weight, self.ln_1.bias, self.ln_1.eps)
        qkv = F.linear(normed, self.qkv_proj.weight).view(batch, tokens, 3 * self.heads, self.width)
        rotate_in_place(qkv[:, :, : 2 * self.heads], rotations)
        cache.write(layer, where.row_of, where.columns, qkv[:, :, self.heads :])
        keys, values = cache.read(layer, where.rows, where.length)
        queries = qkv[:, :, : self.heads].transpose(1, 2)
        attended = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
        x = torch.addmm(x, attended.transpose(1, 2).reshape(x.shape), self.out_proj.weight.t())
        hidden = F.gelu(F.linear(normed, self.fc_in.weight, self.fc_in.bias), approximate="tanh")
        return x.add_(F.linear(hidden, self.fc_out.weight, self.fc_out.bias))

    def finish(self, x: Tensor, normed: Tensor, attended: Tensor) -> Tensor:
        """Add attention's output and the feed-forward layer's to the residual ``x``."""
        return cast(Tensor, x + self.out_proj(attended.transpose(1, 2).flatten(2)) + self.feed_forward(normed))

    def feed_forward(self, normed: Tensor) -> Tensor:
        """The feed-forward layer's output."""
        return cast(Tensor, self.fc_out(F.gelu(self.fc_in(normed), approximate="tanh")))
