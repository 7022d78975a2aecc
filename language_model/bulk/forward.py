"""GPT-J over whole texts at once, where only some of the outcomes matter.

Exactly what the model computes, less what nobody looks at. In the first layer a token's projections and its
feed-forward part depend on the token alone, so they are computed once for each different token. In the last layer the
other tokens' keys and values are all that an outcome needs of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from language_model.block import Block, rotate
from language_model.bulk.shared_attention import KeysValues
from language_model.gptj import GPTJ


def outcomes(
    model: GPTJ, ids: Tensor, wanted: Tensor, prompt: Sequence[KeysValues] = (), *, keep: bool = False
) -> tuple[Tensor, list[KeysValues]]:
    """What the vocabulary head reads, ``[texts, wanted, n_embd]``, behind the tokens at the columns ``wanted``
    ``[texts, wanted]`` of ``ids`` ``[texts, tokens]``; and, to ``keep``, each layer's keys and values ``[texts, heads,
    tokens, head_dim]``. ``prompt``: of each layer, keys and values ``[heads, tokens, head_dim]`` before all texts."""
    texts, tokens = ids.shape
    before = prompt[0].keys.shape[1] if prompt else 0
    blocks = model.layers()
    width = model.config.n_embd
    columns = torch.arange(before + tokens, device=ids.device)
    visible = (columns <= columns[before:].unsqueeze(1)) if before else None
    rotations = model.rotations[before : before + tokens].unsqueeze(0)
    kinds, kind_of = torch.unique(ids, return_inverse=True)
    x = model.wte(kinds)
    kept: list[KeysValues] = []
    for number, block in enumerate(blocks):
        first, last = number == 0, number == len(blocks) - 1
        normed = block.ln_1(x)
        queried = normed
        if first:
            projected = block.qkv_proj(normed)[kind_of]
            x = (x + block.feed_forward(normed))[kind_of]
            queries, others = projected[..., :width], projected[..., width:]
            if last:
                x, queries = _at(x, wanted), _at(queries, wanted)
        elif last:
            x, queried = _at(x, wanted), _at(normed, wanted)
            queries = F.linear(queried, block.qkv_proj.weight[:width])
            others = F.linear(normed, block.qkv_proj.weight[width:])
        else:
            queries, others = block.qkv_proj(normed).split([width, 2 * width], dim=-1)
        turned = _heads(block, queries, model.rotations[before + wanted] if last else rotations)
        own = KeysValues(_heads(block, others[..., :width], rotations), _heads(block, others[..., width:], None))
        if keep:
            kept.append(KeysValues(own.keys.contiguous(), own.values.contiguous()))
        if prompt:
            shared = [one.expand(texts, -1, -1, -1) for one in prompt[number]]
            own = KeysValues(*(torch.cat(pair, dim=2) for pair in zip(shared, own, strict=True)))
        mask = (columns <= before + wanted.unsqueeze(2)).unsqueeze(1) if last else visible
        attended = F.scaled_dot_product_attention(turned, *own, attn_mask=mask, is_causal=mask is None)
        merged = block.out_proj(attended.transpose(1, 2).flatten(2))
        x = x + merged if first else x + merged + block.feed_forward(queried)
    return cast(Tensor, model.ln_f(x)), kept


def _heads(block: Block, projected: Tensor, rotations: Tensor | None) -> Tensor:
    """``[batch, tokens, n_embd]`` as ``[batch, heads, tokens, head_dim]``, rotated if it is given how."""
    apart = projected.reshape(*projected.shape[:-1], block.heads, block.width)
    return (apart if rotations is None else rotate(apart, rotations)).transpose(1, 2)


def _at(of_tokens: Tensor, wanted: Tensor) -> Tensor:
    """The rows at ``wanted`` ``[texts, n]`` of ``[texts, tokens, width]``."""
    return of_tokens.gather(1, wanted.unsqueeze(2).expand(-1, -1, of_tokens.shape[2]))
