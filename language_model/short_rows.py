"""How texts of ordinary length attend fastest on a CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

_SHORT: Final = 1_024
"""Tokens up to which holding the square of scores costs no more than the kernel that avoids it."""


@contextlib.contextmanager
def attention_for(device: torch.device, tokens: int) -> Iterator[None]:
    """``scaled_dot_product_attention`` of rows of so many tokens: on a CPU, in bfloat16, short rows attend fastest as
    two plain products, and only where these may stay in bfloat16 too. Elsewhere torch chooses."""
    if device.type != "cpu" or tokens > _SHORT or not torch.is_autocast_enabled("cpu"):
        yield
        return
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()  # type: ignore[no-untyped-call]
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # of every device, despite its name
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)
