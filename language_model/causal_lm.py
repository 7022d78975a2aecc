"""What the engine needs of a model and its cache. ``gptj.py`` is the fast one; ``other_models`` takes transformers'
others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import torch
from torch import Tensor


class Cache(Protocol):
    """Keys and values of the tokens seen so far, in rows; see :class:`~language_model.kv_cache.KVCache`."""

    lengths: list[int]

    @property
    def rows(self) -> int: ...

    def cut(self, row: int, length: int) -> None:
        """Forget all but the first ``length`` tokens of ``row``."""
        ...

    def copy(self, source: int, target: int, length: int) -> None:
        """Make ``target`` hold the first ``length`` tokens of ``source``, and nothing else."""
        ...

    def swap(self, first: int, second: int) -> None:
        """Exchange two rows."""
        ...


C = TypeVar("C", bound=Cache)


class CausalLM(Protocol[C]):
    """A causal language model whose computation can be kept, cut and extended."""

    @property
    def device(self) -> torch.device: ...

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence."""
        ...

    @property
    def end_ids(self) -> Sequence[int]:
        """The tokens that end a text."""
        ...

    @property
    def cache_bytes_per_token(self) -> int: ...

    def new_cache(self, rows: int, max_length: int | None = None) -> C: ...

    def prepare(self, cache: C, rows: int) -> None:
        """Do now what steps of up to ``rows`` rows would else wait for at first; may take seconds."""
        ...

    def expect_step(self) -> None:
        """Let what sleeps between steps wake up: one will come in a moment. Any thread may call this."""
        ...

    def extend(self, cache: C, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """Append ``ids[i]`` to row ``rows[i]``; logits ``[len(rows), vocabulary]`` after each row's last token."""
        ...

    def extend_every(self, cache: C, row: int, ids: Sequence[int]) -> Tensor:
        """Append ``ids`` to ``row``; logits ``[len(ids), vocabulary]`` after each of them."""
        ...
