"""What the ways to compute transformers' models share: the model, its sizes, and the tokens that begin and end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from language_model.causal_lm import C, CausalLM


class OtherCausalLM(CausalLM[C]):
    """A transformers model; see :class:`~language_model.causal_lm.CausalLM`."""

    def __init__(self, model: Any) -> None:
        """Wrap a ``PreTrainedModel`` with a vocabulary head."""
        self._model = model.eval().requires_grad_(False)
        self._config = model.config

    @property
    def device(self) -> torch.device:
        return cast(torch.device, self._model.device)

    @property
    def max_positions(self) -> int:
        return cast(int, self._config.max_position_embeddings)

    @property
    def end_ids(self) -> list[int]:
        ids = self._config.eos_token_id
        return ids if isinstance(ids, list) else [] if ids is None else [ids]

    @property
    def begin_id(self) -> int | None:
        """The token that is before a text: the model's own, or else what ends the text before it."""
        id = cast("int | None", self._config.bos_token_id)
        return id if id is not None else next(iter(self.end_ids), None)

    @property
    def layers(self) -> int:
        return cast(int, self._config.num_hidden_layers)

    @property
    def key_heads(self) -> int:
        """Heads that have keys and values of their own; several heads of queries may share one."""
        heads = getattr(self._config, "num_key_value_heads", None) or self._config.num_attention_heads
        return cast(int, heads)

    @property
    def head_width(self) -> int:
        config = self._config
        return cast(int, getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)

    @property
    def cache_bytes_per_token(self) -> int:
        return cast(int, self.layers * 2 * self.key_heads * self.head_width * self._model.dtype.itemsize)

    @abstractmethod
    def new_cache(self, rows: int, max_length: int | None = None) -> C:
        """A cache for ``rows`` sequences of at most ``max_length`` tokens (default: all the model's positions)."""

    def prepare(self, cache: C, rows: int) -> None:
        """Nothing is to be done beforehand."""

    def expect_step(self) -> None:
        """Nothing sleeps here."""

    @abstractmethod
    def extend(self, cache: C, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """Append ``ids[i]`` to row ``rows[i]``; logits ``[len(rows), vocabulary]`` after each row's last token.

        Raises:
            ValueError: if a row would outgrow the model's positions or gets no token.
        """

    @abstractmethod
    def extend_every(self, cache: C, row: int, ids: Sequence[int]) -> Tensor:
        """Append ``ids`` to ``row``; logits ``[len(ids), vocabulary]`` after each of them.

        Raises:
            ValueError: if the row would outgrow the model's positions or gets no token.
        """
