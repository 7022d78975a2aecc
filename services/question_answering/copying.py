"""A T5 that copies before it has learned anything.

An answer is a stretch of a passage, and a model that starts from random weights spends most of a short training finding
out how to copy. These weights start with the circuit that trained models come to have for it (induction heads; Olsson
et al., 2022): a head of the encoder's first layer marks each token with the one before it; one head of each decoder
layer looks for the token marked with the last one written, and the tied output turns what it finds into the next.
"""

from __future__ import annotations

from typing import Final

import torch

from services.question_answering.t5 import T5

_PREVIOUS: Final = 1
"""The bucket of the relative position of the token before."""
_FOCUS: Final = 8.0
"""What the token before scores above all others: enough for most of a softmax over a hundred tokens."""
_MATCH: Final = 0.6
"""Scales queries and keys: a match scores several times what a chance likeness does."""


@torch.no_grad()
def start_as_copier(model: T5, seed: int) -> T5:
    """Put the circuit into head 0 of ``model``'s layers; the rest of its weights stay as they are.

    Raises:
        ValueError: the output is not tied to the embeddings, or the model is too narrow for two heads.
    """
    config = model.config
    head, width = config.head_width, config.width
    if not config.tied or 2 * head > width or config.heads * head != width:
        raise ValueError("copying starts from tied embeddings and at least two heads that make up the model's width")
    random = torch.Generator().manual_seed(seed)
    axes, _ = torch.linalg.qr(torch.randn(width, width, generator=random))
    token, mark = axes[:head], axes[head : 2 * head]

    first = model.encoder.block[0].layer[0].SelfAttention
    first.relative_attention_bias.weight[_PREVIOUS, 0] = _FOCUS
    first.q.weight[:head] = 0.0
    first.v.weight[:head] = token
    first.o.weight[:, :head] = mark.T
    for block in model.decoder.block:
        cross = block.layer[1].EncDecAttention
        carried, _ = torch.linalg.qr(torch.randn(width, width, generator=random))
        cross.v.weight.copy_(carried)
        cross.o.weight.copy_(carried.T)
        cross.q.weight[:head] = _MATCH * token
        cross.k.weight[:head] = _MATCH * mark
    return model
