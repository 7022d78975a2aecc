"""A model's weights as ``products.h`` reads them: in panels of 32 columns, as floats, bfloat16, bytes or half bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from language_model.block import Block
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ

PANEL: Final = 32
"""Columns of a weight matrix that lie together, row after row; ``products.h``'s ``PANEL``."""

GROUP: Final = 128
"""Weights of a column that share a scale, where they are whole numbers; ``products.h``'s ``GROUP``."""

_LANES: Final = PANEL // 2
_AT_ONCE: Final = 1024
"""Columns that are packed at once, in whole panels, so that of a large matrix no second one is in memory."""


class Weights(IntEnum):
    """What a weight is; the numbers are those of ``products.h``."""

    FLOAT32 = 0
    BFLOAT16 = 1
    INT8 = 2
    INT4 = 3

    @property
    def largest(self) -> int:
        """The largest whole number that a weight can be."""
        return {Weights.INT8: 127, Weights.INT4: 7}[self]


@dataclass(frozen=True)
class Matrix:
    """A weight matrix ``[out, in]`` and its bias, packed: ``panels`` in the order of reading, ``scales`` ``[out / 32,
    in / 128, 32]`` of whole numbers (else empty), ``bias`` of whole panels. ``out`` and ``in`` are before they were
    filled up with zeros."""

    weights: Weights
    out: int
    taken: int
    panels: Tensor
    scales: Tensor
    bias: Tensor

    def __post_init__(self) -> None:
        """Compiled code reads beyond what is too short.

        Raises:
            ValueError: if the parts do not fit together.
        """
        bits = {Weights.FLOAT32: 32, Weights.BFLOAT16: 16, Weights.INT8: 8, Weights.INT4: 4}[self.weights]
        scales = self.width * self.depth // GROUP if self.whole else 0
        found = (len(self.bias), self.panels.nbytes, self.scales.numel(), {self.scales.dtype, self.bias.dtype})
        if found != (padded_size(self.out, PANEL), self.width * self.depth * bits // 8, scales, {torch.float32}):
            raise ValueError(f"no packed matrix of {self.out} x {self.taken}")

    @property
    def whole(self) -> bool:
        return self.weights in (Weights.INT8, Weights.INT4)

    @property
    def width(self) -> int:
        """Columns with those that fill the last panel."""
        return len(self.bias)

    @property
    def depth(self) -> int:
        """Rows with those that fill the last group."""
        return padded_size(self.taken, GROUP) if self.whole else self.taken


def pack(weight: Tensor, bias: Tensor, kind: Weights) -> Matrix:
    """``weight`` ``[out, in]`` and ``bias`` ``[out]``, packed. Whole numbers are rounded to the nearest, with a scale
    for each ``GROUP`` of a column."""
    out, taken = weight.shape
    parts = [_pack_some(some, kind) for some in torch.split(weight.detach(), _AT_ONCE)]
    panels, scales = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    return Matrix(kind, out, taken, panels, scales, padded(bias.detach().float()))


def _pack_some(weight: Tensor, kind: Weights) -> tuple[Tensor, Tensor]:
    """Panels and scales of some columns."""
    matrix, taken = padded(weight.float()), weight.shape[1]
    if kind not in (Weights.INT8, Weights.INT4):
        return _panels(matrix, kind), torch.empty(0)
    matrix = F.pad(matrix, (0, padded_size(taken, GROUP) - taken))
    groups = matrix.view(len(matrix), -1, GROUP)
    scale = groups.abs().amax(dim=-1, keepdim=True) / kind.largest
    steps = torch.where(scale > 0, groups / scale, 0).round().clamp(-kind.largest, kind.largest)
    scales = scale.view(-1, PANEL, groups.shape[1]).transpose(1, 2).contiguous()
    return _panels((steps.view_as(matrix) + (kind.largest + 1)).to(torch.uint8), kind), scales


def _panels(matrix: Tensor, kind: Weights) -> Tensor:
    """``matrix`` ``[out, in]``, both whole, in the order of reading."""
    depth = matrix.shape[1]
    if kind == Weights.FLOAT32:
        panels = matrix.view(-1, PANEL, depth).transpose(1, 2)
    elif kind == Weights.BFLOAT16:
        panels = matrix.bfloat16().view(-1, 2, _LANES, depth).permute(0, 3, 2, 1)
    elif kind == Weights.INT8:
        panels = matrix.view(-1, PANEL, depth // 4, 4).transpose(1, 2)
    else:
        halves = matrix.view(-1, PANEL, depth // 8, 2, 4).transpose(1, 2)
        panels = halves[..., 0, :] | halves[..., 1, :] << 4
    return panels.contiguous().view(-1)


@dataclass(frozen=True)
class PackedLayer:
    """What a layer multiplies by: first ``into`` (queries, keys, values and the feed-forward layer's first matrix),
    then ``out`` (attention's and the feed-forward layer's last). ``norm`` is the scale and shift before ``into``, if
    those are not part of it."""

    norm: tuple[Tensor, Tensor] | None
    into: Matrix
    out: Matrix | None


@dataclass(frozen=True)
class PackedModel:
    """A GPT-J's weights, packed; the head is a layer without ``out``."""

    config: GPTJConfig
    embedding: Tensor
    layers: Sequence[PackedLayer]
    head: PackedLayer

    @property
    def dtype(self) -> torch.dtype:
        """Of the embedding, and of keys and values: float32 where the weights are, else bfloat16."""
        return self.embedding.dtype


def pack_model(model: GPTJ, kind: Weights = Weights.FLOAT32) -> PackedModel:
    """``model``'s weights, packed. In float32 the normalisations' scales and shifts become part of what follows."""
    embedding = model.wte.weight.detach().to(torch.float32 if kind == Weights.FLOAT32 else torch.bfloat16).clone()
    head = pack_head(model.ln_f, model.lm_head, kind)
    return PackedModel(model.config, embedding, [pack_block(block, kind) for block in model.layers()], head)


def pack_block(block: Block, kind: Weights) -> PackedLayer:
    """A layer's weights, packed."""
    parts = torch.cat([block.qkv_proj.weight, padded(block.fc_in.weight)])
    bias = torch.cat([torch.zeros(block.qkv_proj.out_features), padded(block.fc_in.bias.float())])
    inner = padded(block.fc_out.weight.t()).t()
    out = pack(torch.cat([block.out_proj.weight, inner], dim=1), block.fc_out.bias, kind)
    return _behind(block.ln_1, parts, bias, kind, out)


def pack_head(norm: nn.LayerNorm, head: nn.Linear, kind: Weights) -> PackedLayer:
    """The last normalisation and the vocabulary's matrix, packed."""
    return _behind(norm, head.weight, head.bias, kind, None)


def _behind(norm: nn.LayerNorm, weight: Tensor, bias: Tensor, kind: Weights, out: Matrix | None) -> PackedLayer:
    if kind != Weights.FLOAT32:
        scale, shift = norm.weight.detach().float().clone(), norm.bias.detach().float().clone()
        return PackedLayer((scale, shift), pack(weight, bias, kind), out)
    exact = weight.double()
    folded, moved = exact * norm.weight.double(), bias.double() + exact @ norm.bias.double()
    return PackedLayer(None, pack(folded, moved, kind), out)


def padded(tensor: Tensor) -> Tensor:
    """``tensor`` with zeros in its first dimension, up to whole panels."""
    missing = padded_size(len(tensor), PANEL) - len(tensor)
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])]) if missing else tensor


def padded_size(size: int, unit: int) -> int:
    """``size``, up to whole units."""
    return -(-size // unit) * unit
