"""A large tensor whose memory is taken as it is written, and can be given back in part."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence

import torch
from torch import Tensor


class LazyMemory:
    """A zeroed ``tensor``. On Linux's CPU side its pages are the operating system's until they are written.

    Elsewhere (on a GPU, too) all of it is taken at once and :meth:`release` does nothing."""

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        self.tensor: Tensor
        self.lazy = device.type == "cpu" and sys.platform == "linux"
        if not self.lazy:
            # zeros, not empty: a NaN in memory nobody wrote would pass through a masked softmax as NaN
            self.tensor = torch.zeros(tuple(shape), dtype=dtype, device=device)
            return
        # Private, since pages of a shared mapping would stay when they are given back.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._pages = mmap.mmap(-1, max(1, math.prod(shape)) * dtype.itemsize, flags=flags)
        self.tensor = torch.frombuffer(self._pages, dtype=dtype).view(tuple(shape))

    def release(self, part: Tensor) -> None:
        """Give back the memory of ``part``, a contiguous view of :attr:`tensor`; its content becomes zero or stays."""
        if not self.lazy or not part.numel():
            return
        start = part.data_ptr() - self.tensor.data_ptr()
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (start + part.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            self._pages.madvise(mmap.MADV_DONTNEED, first, last - first)
