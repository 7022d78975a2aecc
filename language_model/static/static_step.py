"""One decode step at fixed shapes and addresses: a token for each of the cache's first rows.

What changes from step to step is the content of a few small tensors, written beforehand. So the operations of a step
can be recorded once and replayed (a CUDA graph), which spares a GPU the hundreds of launches of each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from language_model.gptj import GPTJ
from language_model.kv_cache import KVCache
from language_model.static.layers import MergedLayer, after_attention, before_attention
from language_model.static.static_attention import attend, pieces_of

_ALIGNED: Final = 8
"""Columns to whose multiple a bias is laid out: the attention kernel reads 16 bytes at a time."""


class StepTensors:
    """What steps over up to ``rows`` rows read and write, at addresses that stay; steps of fewer rows use the first.

    A row that gets no token writes to the column that the cache has to spare."""

    def __init__(self, model: GPTJ, cache: KVCache, rows: int) -> None:
        device = model.device
        self.spare_column = cache.max_length
        staged = torch.tensor([[0] * rows, [self.spare_column] * rows])
        self._staged = staged.pin_memory() if device.type == "cuda" else staged
        """On the host, in memory that a GPU reads by itself while the host goes on."""
        self._copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._inputs = staged.to(device)
        self.ids, self.columns = self._inputs
        self.row_of = torch.arange(rows, device=device).unsqueeze(1)
        self.logits = torch.empty(rows, model.config.vocab_size, dtype=model.dtype, device=device)

    def write(self, ids: Sequence[int], columns: Sequence[int], rows: int) -> None:
        """The tokens of the next step over ``rows`` rows, and the columns where they go; further rows get none."""
        if self._copied is not None:
            self._copied.synchronize()  # long since, unless nobody has read the last step's logits
        none = rows - len(ids)
        self._staged[:, :rows] = torch.tensor([[*ids, *[0] * none], [*columns, *[self.spare_column] * none]])
        self._inputs.copy_(self._staged, non_blocking=True)
        if self._copied is not None:
            self._copied.record()


class FusedLayers:
    """The merged layers of a model, and how their parts beside attention are computed: by fused kernels where torch
    can compile them (``compiled``), else operation by operation."""

    def __init__(self, layers: Sequence[MergedLayer], *, compiled: bool) -> None:
        self.layers = layers
        self.before: Callable[..., tuple[Tensor, Tensor, Tensor]] = before_attention
        self.after: Callable[..., Tensor] = after_attention
        if compiled:
            # One compilation for all numbers of rows but 1, of which there are always two kinds.
            self.before = torch.compile(before_attention, dynamic=True)
            self.after = torch.compile(after_attention, dynamic=True)


class StaticStep:
    """A step over the first ``rows`` rows of ``cache``, reading ``length`` tokens of each."""

    def __init__(
        self, model: GPTJ, cache: KVCache, tensors: StepTensors, fused: FusedLayers, rows: int, length: int
    ) -> None:
        self._model, self._cache, self._tensors, self._fused = model, cache, tensors, fused
        self.rows, self.length = rows, length
        self._pieces = pieces_of(rows, model.config.n_head, length)

    @property
    def logits(self) -> Tensor:
        """What :meth:`compute` wrote last, ``[rows, vocabulary]``; the next step writes there again."""
        return self._tensors.logits[: self.rows]

    def compute(self) -> None:
        """Put the written tokens' keys and values into the cache and their logits into :attr:`logits`. Nothing here
        depends on a value: the same operations at the same addresses each time."""
        model, cache, config = self._model, self._cache, self._model.config
        rows, columns = self._tensors.row_of[: self.rows], self._tensors.columns[: self.rows]
        bias = self._bias(columns)
        rotations = torch.view_as_real(model.rotations)[columns.clamp(max=config.n_positions - 1)]
        x = F.embedding(self._tensors.ids[: self.rows], model.wte.weight)
        for number, layer in enumerate(self._fused.layers):
            queries, keys_values, activations = self._fused.before(
                x, layer, rotations, config.n_head, config.layer_norm_epsilon
            )
            cache.write(number, rows, columns.unsqueeze(1), keys_values.unsqueeze(1))
            keys, values = cache.read(number, slice(0, self.rows), self.length)
            attended, log_sums = attend(queries, keys, values, bias, self._pieces)
            x = self._fused.after(x, attended, log_sums, activations, layer.last, layer.last_bias)
        torch.addmm(model.lm_head.bias, model.ln_f(x), model.lm_head.weight.t(), out=self.logits)

    def _bias(self, columns: Tensor) -> Tensor:
        """``[rows, 1, 1, length]``: 0 up to each row's new token, beyond it so low that its share vanishes. It is
        finite, for a piece may have nothing else."""
        laid_out = -(-self.length // _ALIGNED) * _ALIGNED
        beyond = torch.arange(laid_out, device=columns.device) > columns.unsqueeze(1)
        bias = torch.zeros(beyond.shape, dtype=self._model.dtype, device=columns.device)
        bias.masked_fill_(beyond, torch.finfo(self._model.dtype).min / 2)
        return bias[:, None, None, : self.length]
