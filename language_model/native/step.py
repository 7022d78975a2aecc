"""The call of the compiled step."""

from __future__ import annotations

import ctypes
import threading
import weakref
from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor

from language_model.block import rotation_table
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.kv_cache import KVCache
from language_model.native import library
from language_model.native.packing import PANEL, Matrix, PackedLayer, PackedModel, Weights, pack_model, padded_size
from language_model.stepper import Stepper

Longs: TypeAlias = "array[int]"

_LANES: Final = 16
_AT_ONCE: Final = 64
"""Tokens computed together: enough to use each weight often while it is near, few enough to stay near themselves."""

_KINDS: Final = {torch.float32: Weights.FLOAT32, torch.bfloat16: Weights.BFLOAT16}
"""Of the embedding, and of keys and values."""

_MOST_THREADS: Final = 4
"""Of the threads that torch may use: tasks of a few microseconds are not worth sharing with more."""


class NativeStep(Stepper):
    """A GPT-J's inference form: computes what :meth:`GPTJ.extend` does, from packed weights. Changing the model's own
    no longer reaches it.

    A token's logits are the same bits whatever other tokens are computed with it, however its text is cut into calls
    and whichever threads help: each number is always summed in the same order. As many threads share the work as torch
    had when the first of a process was made.
    """

    def __init__(self, packed: PackedModel) -> None:
        """Take ``packed``'s weights, which are not copied.

        Raises:
            Unavailable: if the model is not one for it, or there is no compiler; the message says which.
        """
        config = packed.config
        require_shape(config)
        self._library = hired_library()
        self._layers, self._vocabulary = config.n_layer, config.vocab_size
        # Kept here, for the structures below hold their bare addresses.
        self._packed = packed
        self._rotations = torch.view_as_real(rotation_table(config)).contiguous()
        self._layer_structs = (library.LayerStruct * config.n_layer)(*map(_layer, packed.layers))
        self._model = library.ModelStruct(
            *(config.n_layer, config.n_embd, config.n_head, config.head_dim, config.rotary_dim),
            *(padded_size(config.inner_dim, PANEL), padded_size(config.vocab_size, PANEL), config.layer_norm_epsilon),
            *(_KINDS[packed.embedding.dtype], packed.embedding.data_ptr()),
            *(self._rotations.data_ptr(), ctypes.addressof(self._layer_structs), _layer(packed.head)),
        )
        self._at = ctypes.addressof(self._model)
        self._known = threading.local()
        """Each thread's newest :class:`_Known`."""

    @classmethod
    def of(cls, model: GPTJ) -> NativeStep:
        """Pack ``model``'s weights, which may take a moment.

        Raises:
            Unavailable: if the model is not one for it, or there is no compiler; the message says which.
        """
        if model.device.type != "cpu" or model.dtype != torch.float32:
            raise library.Unavailable(f"the compiled step is for float32 on a CPU, not {model.dtype} on {model.device}")
        require_shape(model.config)
        library.load()
        return cls(pack_model(model))

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """As :meth:`GPTJ.extend`; there must be room in the rows.

        Raises:
            ValueError: if a token is not of the vocabulary.
        """
        last = array("l", [end - 1 for end in accumulate(map(len, ids))])
        return self._extend(cache, rows, ids, last)

    def extend_every(self, cache: KVCache, row: int, ids: Sequence[int]) -> Tensor:
        """As :meth:`GPTJ.extend_every`; there must be room in the row.

        Raises:
            ValueError: if a token is not of the vocabulary.
        """
        return self._extend(cache, [row], [ids], array("l", range(len(ids))))

    def _extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]], wanted: Longs) -> Tensor:
        """Logits after the tokens that are ``wanted``, counted through all of ``ids``."""
        tokens, row_of, positions = array("l"), array("l"), array("l")
        for row, new in zip(rows, ids, strict=True):
            start, count = cache.lengths[row], len(new)
            tokens.extend(new)
            row_of.extend([row] * count)
            positions.extend(range(start, start + count))
        if not 0 <= min(tokens) <= max(tokens) < self._vocabulary:
            raise ValueError(f"token ids must be between 0 and {self._vocabulary - 1}")
        logits = torch.empty(len(wanted), self._model.vocabulary)
        if len(tokens) <= _AT_ONCE:
            self._step(cache, tokens, row_of, positions, wanted, logits)
        else:
            done = 0
            for start in range(0, len(tokens), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                here = array("l", [index - start for index in wanted[done:] if index < part.stop])
                self._step(cache, tokens[part], row_of[part], positions[part], here, logits[done:])
                done += len(here)
        for row, new in zip(rows, ids, strict=True):
            cache.lengths[row] += len(new)
        return logits if self._vocabulary == self._model.vocabulary else logits[:, : self._vocabulary]

    def expect(self) -> None:
        """Wake up threads that share the work of a step and sleep: one will come within some 0.1 ms."""
        if (code := library.short_calls()) is not None:
            code.rouse()

    def _step(
        self, cache: KVCache, tokens: Longs, rows: Longs, positions: Longs, wanted: Longs, logits: Tensor
    ) -> None:
        memory, scratch = self._memory(cache)
        self._library.step(
            *(self._at, memory, len(tokens), _address(tokens), _address(rows), _address(positions)),
            *(len(wanted), _address(wanted), max(positions) + 1, scratch, logits.data_ptr()),
        )

    def _memory(self, cache: KVCache) -> tuple[int, int]:
        """Addresses of what the step needs to know of ``cache``, and of this thread's scratch memory for it."""
        known: _Known | None = getattr(self._known, "cache", None)
        if known is None or known.cache() is not cache:
            tokens = cache.tokens
            kept = (self._model.layers, 2 * self._model.heads, self._model.head_width)
            fits = (tokens.shape[0], *tokens.shape[3:]) == kept and tokens.dtype in _KINDS
            if not fits or not tokens.is_contiguous():
                raise ValueError("the cache was not made for this model")
            size = self._library.scratch_size(self._at, _AT_ONCE, cache.max_length)
            structure = library.CacheStruct(_KINDS[tokens.dtype], tokens.data_ptr(), *tokens.stride()[:3])
            known = self._known.cache = _Known(weakref.ref(cache), structure, torch.empty(size))
        return ctypes.addressof(known.structure), known.scratch.data_ptr()


class _Known(NamedTuple):
    """A cache that was used before: to describe it again at each step would take a tenth of a small step's time."""

    cache: weakref.ref[KVCache]
    structure: library.CacheStruct
    scratch: Tensor


def hired_library() -> ctypes.CDLL:
    """The library, whose work as many threads share as torch had when this was first asked.

    Raises:
        Unavailable: if there is no compiler, or it fails.
    """
    found = library.load()
    found.hire(min(torch.get_num_threads(), _MOST_THREADS) - 1)
    return found


def _address(longs: Longs) -> int:
    return longs.buffer_info()[0]


def require_shape(config: GPTJConfig) -> None:
    """Refuse what the compiled step cannot compute.

    Raises:
        Unavailable: naming the size.
    """
    if config.head_dim % _LANES:
        raise library.Unavailable(f"the width of a head, {config.head_dim}, is not a multiple of {_LANES}")


def _layer(layer: PackedLayer) -> library.LayerStruct:
    scale, shift = layer.norm or (None, None)
    out = library.MatrixStruct() if layer.out is None else matrix_struct(layer.out)
    return library.LayerStruct(_at(scale), _at(shift), matrix_struct(layer.into), out)


def matrix_struct(matrix: Matrix) -> library.MatrixStruct:
    """``matrix`` as compiled code reads it; it holds bare addresses."""
    sizes = (matrix.weights, matrix.depth, matrix.taken, matrix.width)
    return library.MatrixStruct(*sizes, matrix.panels.data_ptr(), _at(matrix.scales), matrix.bias.data_ptr())


def _at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
