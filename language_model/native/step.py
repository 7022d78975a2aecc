"""A model's weights, packed for the compiled step, and the call of it."""

from __future__ import annotations

import ctypes
import threading
import weakref
from array import array
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn

from language_model.gptj import GPTJ
from language_model.kv_cache import KVCache
from language_model.native import library
from language_model.stepper import Stepper

Longs: TypeAlias = "array[int]"

_PANEL: Final = 32
"""Columns of a weight matrix that lie together, row after row; ``step.c``'s ``PANEL``."""

_LANES: Final = 16
_AT_ONCE: Final = 64
"""Tokens computed together: enough to use each weight often while it is near, few enough to stay near themselves."""

_MOST_THREADS: Final = 4
"""Of the threads that torch may use: tasks of a few microseconds are not worth sharing with more."""

_LARGEST: Final = 256 * 2**20
"""Bytes of weights up to which a step is bound by overhead and one core's caches; beyond, torch's threads win, and a
second copy of the weights is no longer small."""


class NativeStep(Stepper):
    """A GPT-J's inference form: computes what :meth:`GPTJ.extend` does, from a copy of the weights. Changing them no
    longer reaches it.

    A token's logits are the same bits whatever other tokens are computed with it, however its text is cut into calls
    and whoever helps: each number is always summed in the same order. As many threads share the work as torch had
    when the first of a process was made.
    """

    def __init__(self, model: GPTJ) -> None:
        """Pack ``model``'s weights, which may take a moment.

        Raises:
            Unavailable: if the model is not one for it, or there is no compiler; the message says which.
        """
        config = model.config
        if model.device.type != "cpu" or model.dtype != torch.float32:
            raise library.Unavailable(f"the compiled step is for float32 on a CPU, not {model.dtype} on {model.device}")
        if config.head_dim % _LANES:
            raise library.Unavailable(f"the width of a head, {config.head_dim}, is not a multiple of {_LANES}")
        if 4 * sum(parameter.numel() for parameter in model.parameters()) > _LARGEST:
            raise library.Unavailable(f"the model is larger than {_LARGEST // 2**20} MiB: torch computes it as fast")
        self._library = library.load()
        self._library.hire(min(torch.get_num_threads(), _MOST_THREADS) - 1)
        self._layers, self._vocabulary = config.n_layer, config.vocab_size
        # Kept here, for the structure below holds their bare addresses.
        self._embedding = model.wte.weight.detach().contiguous().clone()
        self._rotations = torch.view_as_real(model.rotations).contiguous().clone()
        self._weights = _pack(model)
        self._model = library.Model(
            *(config.n_layer, config.n_embd, config.n_head, config.head_dim, config.rotary_dim),
            *(_whole_panels(config.inner_dim), _whole_panels(config.vocab_size), config.layer_norm_epsilon),
            *(tensor.data_ptr() for tensor in (self._embedding, self._rotations, self._weights)),
        )
        self._at = ctypes.addressof(self._model)
        self._known = threading.local()
        """Each thread's newest :class:`_Known`."""

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """As :meth:`GPTJ.extend`; there must be room in the rows.

        Raises:
            ValueError: if a token is not of the vocabulary.
        """
        tokens, row_of, positions, last = array("l"), array("l"), array("l"), array("l")
        for row, new in zip(rows, ids, strict=True):
            start, count = cache.lengths[row], len(new)
            tokens.extend(new)
            row_of.extend([row] * count)
            positions.extend(range(start, start + count))
            last.append(len(tokens) - 1)
        if not 0 <= min(tokens) <= max(tokens) < self._vocabulary:
            raise ValueError(f"token ids must be between 0 and {self._vocabulary - 1}")
        logits = torch.empty(len(rows), self._model.vocabulary)
        if len(tokens) <= _AT_ONCE:
            self._step(cache, tokens, row_of, positions, last, logits)
        else:
            done = 0
            for start in range(0, len(tokens), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                wanted = array("l", [index - start for index in last[done:] if index < part.stop])
                self._step(cache, tokens[part], row_of[part], positions[part], wanted, logits[done:])
                done += len(wanted)
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
            fits = (tokens.shape[0], *tokens.shape[3:]) == kept and tokens.dtype == torch.float32
            if not fits or not tokens.is_contiguous():
                raise ValueError("the cache was not made for this model")
            size = self._library.scratch_size(self._at, _AT_ONCE, cache.max_length)
            structure = library.CacheStruct(tokens.data_ptr(), *tokens.stride()[:3])
            known = self._known.cache = _Known(weakref.ref(cache), structure, torch.empty(size))
        return ctypes.addressof(known.structure), known.scratch.data_ptr()


class _Known(NamedTuple):
    """A cache that was used before: to describe it again at each step would take a tenth of a small step's time."""

    cache: weakref.ref[KVCache]
    structure: library.CacheStruct
    scratch: Tensor


def _address(longs: Longs) -> int:
    return longs.buffer_info()[0]


def _pack(model: GPTJ) -> Tensor:
    """All weights in the order in which a step reads them."""
    packed: list[Tensor] = []
    for block in model.layers():
        parts = torch.cat([block.qkv_proj.weight, _padded(block.fc_in.weight)])
        bias = torch.cat([torch.zeros(block.qkv_proj.out_features), _padded(block.fc_in.bias)])
        packed += _panels(*_with_norm(block.ln_1, parts, bias))
        inner = _padded(block.fc_out.weight.t()).t()
        packed += _panels(torch.cat([block.out_proj.weight, inner], dim=1), block.fc_out.bias)
    packed += _panels(*_with_norm(model.ln_f, model.lm_head.weight, model.lm_head.bias))
    return torch.cat(packed).detach()


def _with_norm(norm: nn.LayerNorm, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """A matrix and its bias, so that they take what ``norm`` gives before its own scale and shift."""
    exact = weight.double()
    return (exact * norm.weight.double()).float(), (bias.double() + exact @ norm.bias.double()).float()


def _panels(weight: Tensor, bias: Tensor) -> list[Tensor]:
    """``weight`` ``[out, in]`` as ``[out / PANEL, in, PANEL]`` in one line, and ``bias``, both filled up with zeros."""
    depth = weight.shape[1]
    return [_padded(weight).view(-1, _PANEL, depth).transpose(1, 2).reshape(-1), _padded(bias)]


def _padded(tensor: Tensor) -> Tensor:
    missing = _whole_panels(len(tensor)) - len(tensor)
    return torch.cat([tensor, tensor.new_zeros(missing, *tensor.shape[1:])]) if missing else tensor


def _whole_panels(size: int) -> int:
    return -(-size // _PANEL) * _PANEL
