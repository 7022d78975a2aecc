"""A GPT-J that is nothing but its compiled step: for weights that only compiled code reads, and for models of which one
copy in memory is enough."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from language_model.causal_lm import CausalLM
from language_model.kv_cache import KVCache, require_room
from language_model.native.packing import PackedModel, Weights
from language_model.native.quantized import load_quantized, pack_checkpoint
from language_model.native.step import NativeStep


class CompiledGPTJ(CausalLM[KVCache]):
    """A GPT-J of packed weights, on a processor. Keys and values are float32 where the weights are, else bfloat16."""

    def __init__(self, packed: PackedModel) -> None:
        """Take ``packed``'s weights, which are not copied.

        Raises:
            Unavailable: there is no compiled step here, or not for this model.
        """
        self.config, self._dtype = packed.config, packed.dtype
        self._step = NativeStep(packed)

    @classmethod
    def load(cls, directory: Path, weights: Weights) -> CompiledGPTJ:
        """Load the checkpoint in ``directory`` with its weights as ``weights``: whole numbers from their own files,
        which are made now if there are none.

        Raises:
            CheckpointError: the checkpoint cannot be used, or the files cannot be written.
            Unavailable: there is no compiled step here, or not for this model.
        """
        whole = weights in (Weights.INT8, Weights.INT4)
        return cls((load_quantized if whole else pack_checkpoint)(directory, weights))

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def max_positions(self) -> int:
        return self.config.n_positions

    @property
    def end_ids(self) -> list[int]:
        return [self.config.eos_token_id]

    @property
    def cache_bytes_per_token(self) -> int:
        return self.config.n_layer * 2 * self.config.n_embd * self._dtype.itemsize

    def new_cache(self, rows: int, max_length: int | None = None) -> KVCache:
        return KVCache(self.config, rows, max_length or self.config.n_positions, dtype=self._dtype)

    def prepare(self, cache: KVCache, rows: int) -> None:
        return

    def expect_step(self) -> None:
        self._step.expect()

    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        require_room(cache, rows, ids)
        return self._step.extend(cache, rows, ids)

    def extend_every(self, cache: KVCache, row: int, ids: Sequence[int]) -> Tensor:
        require_room(cache, [row], [ids])
        return self._step.extend_every(cache, row, ids)
