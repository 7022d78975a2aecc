"""Other causal language models (GPT-2, Llama, ...) through transformers: the slower path.

Each row has a ``DynamicCache`` of its own and goes through the model by itself, so a step of n sequences costs n
forward passes where ``gptj.py`` takes one. What it shares with it is the interface, and so the engine: sequences can
pause, be cut back, extended and put aside, and their logits are those of full recomputation.

transformers' own continuous batching is not used: for GPT-J it gives wrong tokens without a word, and it cannot pause.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from language_model.checkpoint import require_numbers, require_recorded
from language_model.config import CheckpointError, model_type, require_sizes_of


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


class OtherCausalLM:
    """A transformers model; see :class:`~language_model.causal_lm.CausalLM`."""

    def __init__(self, model: Any) -> None:
        """Wrap a ``PreTrainedModel`` with a vocabulary head.

        Raises:
            CheckpointError: if it is a GPT-J, which ``gptj.py`` computes, or a model that does not attend to all that
                came before, whose cache cannot be cut back.
        """
        config = model.config
        if config.model_type == "gptj":
            raise CheckpointError("GPT-J is computed by language_model.gptj, not through transformers")
        kinds = set(getattr(config, "layer_types", None) or ())
        if kinds - {"full_attention"} or (getattr(config, "sliding_window", None) and not kinds):
            raise CheckpointError(
                f"config.json: a {config.model_type} with layers other than full attention is not supported, since its "
                "cache cannot be cut back"
            )
        self._model = model.eval().requires_grad_(False)
        self._config = config

    @classmethod
    def from_pretrained(
        cls, directory: Path | str, *, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu"
    ) -> OtherCausalLM:
        """Load a Hugging Face checkpoint directory; no code in it is run, and nothing is fetched.

        Raises:
            CheckpointError: if transformers is not installed, or cannot load it, or the model is not one for this path.
        """
        kind = model_type(Path(directory))
        require_sizes_of(Path(directory))
        for file in Path(directory).glob("*.safetensors"):
            require_recorded(file)
        try:
            from transformers import AutoModelForCausalLM
        except ImportError:
            raise CheckpointError(
                f"{directory} holds a {kind}; all models but GPT-J need transformers: pip install transformers"
            ) from None
        try:
            model = AutoModelForCausalLM.from_pretrained(
                directory, dtype=dtype, local_files_only=True, trust_remote_code=False
            )
        # What a wrong field of config.json leads to in the library, it may be any of these.
        except (OSError, ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"{directory}: transformers cannot load this {kind}: {error}") from error
        for name, tensor in model.state_dict().items():
            require_numbers(Path(directory), name, tensor)
        return cls(model.to(device))

    @property
    def device(self) -> torch.device:
        return cast(torch.device, self._model.device)

    @property
    def max_positions(self) -> int:
        return cast(int, self._config.max_position_embeddings)

    @property
    def end_ids(self) -> list[int]:
        told = self._config.eos_token_id
        return told if isinstance(told, list) else [] if told is None else [told]

    @property
    def begin_id(self) -> int | None:
        """The token that is before a text: the model's own, or else what ends the text before it."""
        told = cast("int | None", self._config.bos_token_id)
        return told if told is not None else next(iter(self.end_ids), None)

    @property
    def cache_bytes_per_token(self) -> int:
        config = self._config
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return cast(int, config.num_hidden_layers * 2 * heads * width * self._model.dtype.itemsize)

    def new_cache(self, rows: int, max_length: int | None = None) -> DynamicRows:
        """A cache for ``rows`` sequences; they grow as they need, up to the model's positions."""
        return DynamicRows(rows)

    def prepare(self, cache: DynamicRows, rows: int) -> None:
        """Nothing is to be done beforehand."""

    def expect_step(self) -> None:
        """Nothing sleeps here."""

    def extend(self, cache: DynamicRows, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        """Append ``ids[i]`` to row ``rows[i]``; logits ``[len(rows), vocabulary]`` after each row's last token.

        Raises:
            ValueError: if a row would outgrow the model's positions or gets no token.
        """
        return torch.cat([self._forward(cache, row, new, logits=1) for row, new in zip(rows, ids, strict=True)])

    def extend_every(self, cache: DynamicRows, row: int, ids: Sequence[int]) -> Tensor:
        """Append ``ids`` to ``row``; logits ``[len(ids), vocabulary]`` after each of them.

        Raises:
            ValueError: if the row would outgrow the model's positions or gets no token.
        """
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
