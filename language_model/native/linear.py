"""The products of a model that torch computes otherwise, from packed weights in compiled code.

Of a small batch's step nearly all time goes into reading weights. torch's products of two to some forty rows take
several times as long as that; these do not."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor, nn

from language_model.native.packing import Weights, pack
from language_model.native.step import hired_library, matrix_struct


class PackedLinear(nn.Module):
    """What ``nn.Linear`` computes, in inference on a processor. A row's result is the same bits whatever other rows are
    computed with it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, kind: Weights) -> None:
        """Pack ``weight`` ``[out, in]`` and ``bias``.

        Raises:
            Unavailable: if there is no compiled code here.
        """
        super().__init__()
        self._library = hired_library()
        self._matrix = pack(weight, torch.zeros(len(weight)) if bias is None else bias, kind)
        self._struct = matrix_struct(self._matrix)
        self._at = ctypes.addressof(self._struct)
        self._scratch_floats = self._library.product_size(self._at)

    def forward(self, x: Tensor) -> Tensor:
        """``[..., out]`` of ``x`` ``[..., in]``, float32."""
        rows = x.reshape(-1, self._matrix.taken).contiguous()
        made = torch.empty(len(rows), self._matrix.width)
        scratch = torch.empty(self._scratch_floats)
        self._library.lone_product(self._at, len(rows), rows.data_ptr(), made.data_ptr(), scratch.data_ptr())
        return made[:, : self._matrix.out].reshape(*x.shape[:-1], self._matrix.out)


def pack_products(model: nn.Module, transposed: type[Any], kind: Weights) -> None:
    """Replace each ``nn.Linear`` in ``model``, and each module of the class ``transposed``, whose weight is ``[in,
    out]``; the rest becomes float32.

    Raises:
        Unavailable: if there is no compiled code here; the model is as it was then.
    """
    hired_library()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Linear):
                setattr(parent, name, PackedLinear(child.weight, child.bias, kind))
            elif isinstance(child, transposed):
                setattr(parent, name, PackedLinear(child.weight.t(), child.bias, kind))
    model.float()
