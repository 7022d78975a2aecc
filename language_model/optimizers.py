"""What changes a model's weights in training: AdamW, or Muon for its layers' matrices and AdamW for the rest.

Muon (Jordan et al., 2024) makes each matrix's update orthogonal, so that no few directions take all of it: a small
model needs fewer steps, each somewhat longer (docs/decisions/030-muon.md).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

Optimizing = Literal["adamw", "muon"]
"""What changes the layers' matrices."""


def optimizers(
    model: nn.Module, kind: Optimizing, *, betas: tuple[float, float], weight_decay: float
) -> list[torch.optim.Optimizer]:
    """The optimizers of all weights of ``model``, which is where it stays. One learning rate, set before each step,
    suits both: Muon's updates are made as large as AdamW's.

    Args:
        model: what is trained.
        kind: what changes the layers' matrices; AdamW changes all else.
        betas: of AdamW.
        weight_decay: of matrices; on norms, biases and rarely seen embeddings it would only erase.
    """
    embeddings = {id(one.weight) for one in model.modules() if isinstance(one, nn.Embedding)}
    matrices, others, layers = [], [], []
    for name, weight in model.named_parameters():
        if weight.dim() != 2 or id(weight) in embeddings:
            others.append(weight)
        elif kind == "muon" and not name.startswith("lm_head."):
            layers.append(weight)
        else:
            matrices.append(weight)
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    found: list[torch.optim.Optimizer] = [torch.optim.AdamW(groups, lr=0.0, betas=betas, fused=True)]
    if layers:
        found.append(torch.optim.Muon(layers, lr=0.0, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"))
    return found
