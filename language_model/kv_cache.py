"""Keys and values of the tokens seen so far, kept so that nothing is computed twice.

A cache has ``rows``, one a sequence. A row can be kept while a tool runs, cut back when a call is rolled back, and
extended when a result is spliced in. Each row has addresses for ``max_length`` tokens, and on a CPU takes memory
for those that it holds; a cut only changes a length.
"""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from typing import Final, Protocol

import torch
from torch import Tensor

_WORTH_RELEASING: Final = 2**19
"""Bytes of a row, in each layer, that must be free before they are given back: less costs more than it brings."""

_MOVED_AT_ONCE: Final = 2**22
"""Bytes of a row that a swap moves at once: what it sets aside is in no row meanwhile."""

_MAP_NORESERVE: Final = 0x4000
"""Linux's, on x86-64 and ARM; Python has no name for it before 3.12."""


class CacheSizes(Protocol):
    """What of a model's shape its cache depends on; :class:`~language_model.config.GPTJConfig` has it."""

    @property
    def n_layer(self) -> int: ...

    @property
    def n_head(self) -> int:
        """Heads that have keys and values of their own."""
        ...

    @property
    def head_dim(self) -> int: ...

    @property
    def n_positions(self) -> int:
        """Tokens of the longest sequence."""
        ...


class KVCache:
    """A key-value cache of shape ``[layers, rows, max_length, 2 * heads, head_dim]``: of each token, its keys and
    then its values.

    A token's keys and values lie together, so that appending it is one write and a swap of rows one copy.
    ``lengths[row]`` is how many tokens of a row count. What lies beyond is garbage that attention never sees.
    """

    def __init__(
        self,
        sizes: CacheSizes,
        rows: int,
        max_length: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        spare_column: bool = False,
    ) -> None:
        """Allocate the cache. ``spare_column``: one column more than ``max_length``, which nobody reads: a step of
        fixed shape writes there for rows that get no token.

        Raises:
            ValueError: if ``max_length`` is beyond the model's positions.
        """
        if not 0 < max_length <= sizes.n_positions:
            raise ValueError(f"max_length {max_length} must be between 1 and n_positions {sizes.n_positions}")
        shape = (sizes.n_layer, rows, max_length + spare_column, 2 * sizes.n_head, sizes.head_dim)
        self._memory = LazyMemory(shape, dtype, torch.device(device))
        self._tokens = self._memory.tensor
        self._heads = sizes.n_head
        self._token_bytes = self._tokens.stride(2) * dtype.itemsize
        """Bytes of a token in a layer."""
        self._worth_releasing = max(1, _WORTH_RELEASING // self._token_bytes)
        self.max_length, self.spare_column = max_length, spare_column
        self.lengths = [0] * rows
        self._written = [0] * rows
        """Tokens of each row that take memory, as of its last cut: many small cuts leave as much behind as a large
        one."""

    @property
    def rows(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> Tensor:
        """The cache's memory, in the shape that the class describes."""
        return self._tokens

    @property
    def nbytes(self) -> int:
        """Bytes of the whole cache."""
        return self._tokens.nbytes

    def cut(self, row: int, length: int) -> None:
        """Forget all but the first ``length`` tokens of ``row``.

        Raises:
            ValueError: if the row holds fewer tokens than that.
        """
        if not 0 <= length <= self.lengths[row]:
            raise ValueError(f"cannot cut row {row} of {self.lengths[row]} tokens to {length}")
        self._written[row] = self._release(self._tokens, row, length)
        self.lengths[row] = length

    def copy(self, source: int, target: int, length: int) -> None:
        """Make ``target`` hold the first ``length`` tokens of ``source``, and nothing else.

        Raises:
            ValueError: if ``source`` holds fewer tokens than that.
        """
        if length > self.lengths[source]:
            raise ValueError(f"cannot copy {length} tokens of row {source}, which holds {self.lengths[source]}")
        self.cut(target, min(length, self.lengths[target]))
        self._tokens[:, target, :length] = self._tokens[:, source, :length]
        self.lengths[target] = length

    def swap(self, first: int, second: int) -> None:
        """Exchange two rows, a few layers at a time, so that both together never take much more memory than before.
        The cost is a copy of the tokens that they hold."""
        if first == second:
            return
        longer, shorter = sorted((first, second), key=lambda row: -self.lengths[row])
        length, shared = self.lengths[longer], self.lengths[shorter]
        for layers in torch.split(self._tokens, max(1, _MOVED_AT_ONCE // max(1, length * self._token_bytes))):
            for tokens in torch.split(layers[:, :, :shared], max(1, _MOVED_AT_ONCE // self._token_bytes), dim=2):
                aside = tokens[:, shorter].clone()
                tokens[:, shorter] = tokens[:, longer]
                tokens[:, longer] = aside
            layers[:, shorter, shared:length] = layers[:, longer, shared:length]
            self._release(layers, longer, shared)
        self.lengths[shorter] = length
        self.cut(longer, shared)

    def _release(self, layers: Tensor, row: int, length: int) -> int:
        """Give back what ``row`` takes past ``length`` tokens in some layers, if that is worth it; how many tokens take
        memory then."""
        written = max(self._written[row], self.lengths[row])
        if written - length < self._worth_releasing:
            return written
        for layer in layers:
            self._memory.release(layer[row, length:written])
        return length

    def write(self, layer: int, rows: Tensor, columns: Tensor, keys_values: Tensor) -> None:
        """Put ``keys_values`` ``[batch, new tokens, 2 * heads, head_dim]`` of one layer at ``rows`` ``[batch, 1]``
        and ``columns`` ``[batch, new tokens]``."""
        self._tokens[layer].index_put_((rows, columns), keys_values)

    def read(self, layer: int, rows: slice | Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values ``[len(rows), heads, length, head_dim]`` of one layer: views where ``rows`` is a slice."""
        tokens = self._tokens[layer, rows, :length].transpose(1, 2)
        return tokens[:, : self._heads], tokens[:, self._heads :]


def require_room(cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
    """Refuse to append ``ids[i]`` to row ``rows[i]`` where that cannot be.

    Raises:
        ValueError: if a row would outgrow the cache or gets no token.
    """
    for row, new in zip(rows, ids, strict=True):
        if not new:
            raise ValueError("every row must get at least one token")
        if (needed := cache.lengths[row] + len(new)) > cache.max_length:
            raise ValueError(f"{needed} tokens do not fit a cache of {cache.max_length}")


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
        # Private, since pages of a shared mapping would stay when they are given back; not reserved, since all rows
        # together may have more addresses than there is memory: what may be written is the engine's to limit.
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
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
