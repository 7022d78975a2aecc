"""Any causal language model that transformers loads and that attends to all that came before: the slower path.

Each row has a ``DynamicCache`` of its own and goes through the model by itself, so a step of n sequences costs n
forward passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor

from language_model.config import CheckpointError
from language_model.other_models.base import OtherCausalLM


class DynamicRows:
    """A cache of rows, each a transformers ``DynamicCache``; see :class:`~language_model.causal_lm.Cache`."""

    def __init__(self, rows: int) -> None:
        self.caches = [_empty() for _ in range(rows)]
        self.lengths = [0] * rows

    @property
    def rows(self) -> int:
        return len(self.lengths)

    def cut(self, row: int, length: int) -> None:
        """Forget all but the first ``length`` tokens of ``row``.

        Raises:
            ValueError: if the row holds fewer tokens than that.
        """
        if not 0 <= length <= self.lengths[row]:
            raise ValueError(f"cannot cut row {row} of {self.lengths[row]} tokens to {length}")
        if length == 0:
            self.caches[row] = _empty()
        elif length < self.lengths[row]:
            self.caches[row] = self._beginning(row, length)
        self.lengths[row] = length

    def copy(self, source: int, target: int, length: int) -> None:
        """Make ``target`` hold the first ``length`` tokens of ``source``, and nothing else.

        Raises:
            ValueError: if ``source`` holds fewer tokens than that.
        """
        if length > self.lengths[source]:
            raise ValueError(f"cannot copy {length} tokens of row {source}, which holds {self.lengths[source]}")
        self.caches[target] = self._beginning(source, length)
        self.lengths[target] = length

    def swap(self, first: int, second: int) -> None:
        """Exchange two rows."""
        for of_row in (self.caches, self.lengths):
            of_row[first], of_row[second] = of_row[second], of_row[first]

    def _beginning(self, row: int, length: int) -> Any:
        # Cloned, not cropped: a crop is a view that keeps the memory of all that it came from.
        beginning = _empty()
        for number, layer in enumerate(self.caches[row].layers if length else []):
            beginning.update(layer.keys[..., :length, :].clone(), layer.values[..., :length, :].clone(), number)
        return beginning


class OneByOne(OtherCausalLM[DynamicRows]):
    """A transformers model, one row after the other."""

    def __init__(self, model: Any) -> None:
        """Wrap a ``PreTrainedModel`` with a vocabulary head.

        Raises:
            CheckpointError: if it does not attend to all that came before: its cache cannot be cut back.
        """
        config = model.config
        kinds = set(getattr(config, "layer_types", None) or ())
        if kinds - {"full_attention"} or (getattr(config, "sliding_window", None) and not kinds):
            raise CheckpointError(
                f"config.json: a {config.model_type} with layers other than full attention is not supported, since its "
                "cache cannot be cut back"
            )
        super().__init__(model)

    def new_cache(self, rows: int, max_length: int | None = None) -> DynamicRows:
        """A cache for ``rows`` sequences; they grow as they need, up to the model's positions."""
        return DynamicRows(rows)

    def extend(self, cache: DynamicRows, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        return torch.cat([self._forward(cache, row, new, logits=1) for row, new in zip(rows, ids, strict=True)])

    def extend_every(self, cache: DynamicRows, row: int, ids: Sequence[int]) -> Tensor:
        return self._forward(cache, row, ids, logits=0)

    @torch.inference_mode()
    def _forward(self, cache: DynamicRows, row: int, ids: Sequence[int], *, logits: int) -> Tensor:
        """Logits after the last ``logits`` tokens; after all of them for 0."""
        if not ids:
            raise ValueError("every row must get at least one token")
        if (needed := cache.lengths[row] + len(ids)) > self.max_positions:
            raise ValueError(f"{needed} tokens do not fit a model of {self.max_positions}")
        new = torch.tensor([list(ids)], device=self.device)
        output = self._model(new, past_key_values=cache.caches[row], use_cache=True, logits_to_keep=logits)
        cache.lengths[row] = needed
        return cast(Tensor, output.logits[0])


def _empty() -> Any:
    from transformers import DynamicCache

    return DynamicCache()
