"""All tokens of a step through a transformers model at once, whatever rows they belong to.

The tokens of all rows are one long text to the model, each with the position that it has in its own row. All that a
model does to a token by itself is so done for all of them together, without padding. Only attention looks at other
tokens: there transformers' attention interface calls :func:`_attend`, which puts keys and values into this project's
cache and lets each token see its own row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, cast

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from language_model.kv_cache import KVCache, require_room
from language_model.native.linear import pack_products
from language_model.native.packing import Weights
from language_model.other_models.base import OtherCausalLM
from language_model.where import Run

_ATTENTION: Final = "toolformer_rows"
"""The name of :func:`_attend` in transformers' attention interface."""

_KINDS: Final = {"gpt2", "llama", "mistral", "qwen2", "qwen3"}
"""Values of ``model_type`` whose modules are tested so: they give attention nothing but what is used here."""

_ROTATIONS: Final = {"default", "linear", "llama3", "yarn"}
"""Kinds of rotary positions by which a token's rotation depends on its own position alone."""


@dataclass(frozen=True, slots=True)
class _RowSizes:
    """See :class:`~language_model.kv_cache.CacheSizes`."""

    n_layer: int
    n_head: int
    head_dim: int
    n_positions: int


class Together(OtherCausalLM[KVCache]):
    """A transformers model, all rows of a step at once."""

    def __init__(self, model: Any) -> None:
        """Wrap a ``PreTrainedModel`` with a vocabulary head, whose attention is replaced; see :meth:`takes`."""
        from transformers import AttentionInterface

        AttentionInterface.register(_ATTENTION, _attend)
        super().__init__(model)
        model.set_attn_implementation(_ATTENTION)

    @staticmethod
    def takes(config: Any) -> bool:
        """Whether a model of this configuration can be computed so."""
        rotation = getattr(config, "rope_parameters", None) or {}
        return config.model_type in _KINDS and rotation.get("rope_type", "default") in _ROTATIONS

    def pack(self, kind: Weights) -> None:
        """Compute products in compiled code from now on, with weights packed as ``kind``; the rest in float32.

        Raises:
            Unavailable: if there is no compiled code here; then all is as it was.
        """
        from transformers.pytorch_utils import Conv1D  # GPT-2's

        pack_products(self._model, Conv1D, kind)

    def new_cache(self, rows: int, max_length: int | None = None) -> KVCache:
        sizes = _RowSizes(self.layers, self.key_heads, self.head_width, self.max_positions)
        dtype, device = self._model.dtype, self.device
        return KVCache(sizes, rows, max_length or self.max_positions, dtype=dtype, device=device)

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        ends = torch.tensor([len(of_row) for of_row in ids], device=self.device).cumsum(0)
        return self._forward(cache, rows, ids, ends - 1)

    def extend_every(self, cache: KVCache, row: int, ids: Sequence[int]) -> Tensor:
        return self._forward(cache, [row], [ids], 0)

    @torch.inference_mode()
    def _forward(
        self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]], logits: Tensor | int
    ) -> Tensor:
        """Logits after the tokens at the places ``logits`` of all new ones; after each of them for 0."""
        require_room(cache, rows, ids)
        step = _Step(cache, rows, ids)
        output = self._model(
            torch.tensor([[token for of_row in ids for token in of_row]], device=self.device),
            position_ids=step.columns.t(),
            use_cache=False,
            logits_to_keep=logits,
            step_of_rows=step,
        )
        for row, new in zip(rows, ids, strict=True):
            cache.lengths[row] += len(new)
        return cast(Tensor, output.logits[0])


class _Step:
    """Where the tokens of one step go, and what they see. ``columns`` ``[tokens, 1]``: their positions."""

    def __init__(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> None:
        self._cache = cache
        runs = [list(run) for _, run in groupby(range(len(rows)), key=lambda at: len(ids[at]))]
        self._runs = [Run.of(cache, [rows[at] for at in run], len(ids[run[0]])) for run in runs]
        places = [run.where for run in self._runs]
        self.columns = torch.cat([where.columns.flatten() for where in places]).unsqueeze(1)
        self._row_of = torch.cat([where.row_of.expand_as(where.columns).flatten() for where in places]).unsqueeze(1)
        self._sights: dict[int | None, list[tuple[Tensor | None, bool]]] = {}
        """What each run sees, by the layer's window: found once for all layers."""

    def attend(
        self, layer: int, queries: Tensor, keys: Tensor, values: Tensor, scale: float | None, window: int | None
    ) -> Tensor:
        """What attention finds, ``[tokens, heads, head_dim]``, for ``queries`` ``[heads, tokens, head_dim]``, once
        ``keys`` and ``values`` (of fewer heads, perhaps) have joined the cache."""
        self._cache.write(layer, self._row_of, self.columns, torch.cat([keys, values]).transpose(0, 1).unsqueeze(1))
        if window not in self._sights:
            self._sights[window] = [run.sight(window) for run in self._runs]
        found, start = [], 0
        for run, (mask, causal) in zip(self._runs, self._sights[window], strict=True):
            rows, tokens = run.where.columns.shape
            of_run = queries[:, start : start + rows * tokens]
            of_run = of_run.reshape(-1, rows, tokens, of_run.shape[-1]).transpose(0, 1)
            start += rows * tokens
            cached_keys, cached_values = self._cache.read(layer, run.where.rows, run.where.length)
            shared = of_run.shape[1] // cached_keys.shape[1]
            if tokens == 1:  # heads that share keys look at them side by side, as tokens of one head would
                of_run = of_run.reshape(rows, -1, shared, of_run.shape[-1])
            attended = F.scaled_dot_product_attention(
                of_run, cached_keys, cached_values, mask, is_causal=causal, scale=scale,
                enable_gqa=shared > 1 and tokens > 1,
            )  # fmt: skip
            if tokens == 1:
                attended = attended.reshape(rows, -1, 1, attended.shape[-1])
            found.append(attended.transpose(1, 2).flatten(0, 1))
        return torch.cat(found) if len(found) > 1 else found[0]


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    _mask: None,
    *,
    step_of_rows: _Step,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """transformers' attention interface: ``[1, tokens, heads, head_dim]``, and no weights."""
    return step_of_rows.attend(module.layer_idx, query[0], key[0], value[0], scaling, sliding_window).unsqueeze(0), None
