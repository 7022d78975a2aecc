"""Decode steps recorded as CUDA graphs, one for each bucket of rows and length, and which of them a step takes.

A decode step gives each of the cache's first rows one token. What changes from step to step is the content of a few
small tensors, written beforehand. So the operations of a step can be recorded once and replayed, which spares a GPU the
hundreds of launches of each step."""

from __future__ import annotations

import bisect
import logging
import time
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from language_model.gptj import GPTJ
from language_model.kv_cache import KVCache
from language_model.stepper import Stepper
from language_model.where import Where

if TYPE_CHECKING:
    from torch.cuda import _POOL_HANDLE

log = logging.getLogger(__name__)

_FEW_ROWS: Final = (1, 2, 4)
_ROWS_APART: Final = 8
_LENGTHS_APART: Final = 256
_REHEARSALS: Final = 3
"""Runs before a recording: kernels are chosen and given their workspace in them."""


def row_buckets(most: int) -> list[int]:
    """Numbers of rows that steps are recorded for, up to ``most``. Rows too many cost the reading of their cache."""
    return sorted({*(rows for rows in _FEW_ROWS if rows < most), *range(_ROWS_APART, most, _ROWS_APART), most})


def length_buckets(longest: int) -> list[int]:
    """Numbers of cached tokens that steps are recorded for, up to ``longest``."""
    return [*range(_LENGTHS_APART, longest, _LENGTHS_APART), longest]


class DecodeGraphs(Stepper):
    """Computes steps in which the first rows of a cache get one token each; torch computes the rest. Weights may be
    changed in place, but not replaced.

    On a GPU each bucket's step is recorded once and then replayed. Where recording fails the model goes on without,
    and the log says why. On a CPU the same steps run unrecorded, which is slower than the ordinary way and serves to
    prove them.
    """

    spare_column = True

    def __init__(self, model: GPTJ) -> None:
        self._model = model
        self.on_gpu = model.device.type == "cuda"
        self._for: _OfCache | None = None
        self.failed = False
        """Whether recording was dropped."""

    @torch.inference_mode()
    def prepare(self, cache: KVCache, rows: int) -> None:
        """Record the steps of up to ``rows`` rows of ``cache`` now, so that no request waits for it."""
        if not self.on_gpu:
            return
        started, of_cache = time.monotonic(), self._of(cache)
        most = of_cache.bucket(min(rows, cache.rows))
        # The largest first: the smaller ones then find all the memory that they need.
        for row_bucket in reversed([bucket for bucket in of_cache.rows if bucket <= most]):
            for length in reversed(of_cache.lengths):
                if self._step(of_cache, row_bucket, length) is None:
                    return
        log.info("recorded %d decode steps in %.1f s", len(of_cache.steps), time.monotonic() - started)

    @torch.inference_mode()
    def extend(self, cache: KVCache, rows: Sequence[int], ids: Sequence[Sequence[int]]) -> Tensor:
        first = next((at for at, new in enumerate(ids) if len(new) > 1), len(ids))
        in_place = list(rows[:first]) == list(range(first))
        replayed = self._replayed(cache, [new[0] for new in ids[:first]]) if in_place else None
        if replayed is None:
            return self._model.extend_by_torch(cache, rows, ids)
        if first == len(ids):
            return replayed
        return torch.cat([replayed, self._model.extend_by_torch(cache, rows[first:], ids[first:])])

    def _replayed(self, cache: KVCache, ids: Sequence[int]) -> Tensor | None:
        """Append ``ids[i]`` to row ``i``; logits ``[len(ids), vocabulary]``, or ``None`` if torch must compute them."""
        if self.failed or not cache.spare_column or not ids:
            return None
        of_cache, columns = self._of(cache), cache.lengths[: len(ids)]
        length = of_cache.lengths[bisect.bisect_left(of_cache.lengths, max(columns) + 1)]
        rows = of_cache.bucket(len(ids))
        replay = self._step(of_cache, rows, length)
        if replay is None:
            return None
        of_cache.write(ids, columns, rows)
        replay()
        for row in range(len(ids)):
            cache.lengths[row] += 1
        return of_cache.logits[: len(ids)].clone()

    def _of(self, cache: KVCache) -> _OfCache:
        if self._for is None or self._for.cache() is not cache:
            self._for = _OfCache(self._model, cache)
        return self._for

    def _step(self, of_cache: _OfCache, rows: int, length: int) -> Callable[[], None] | None:
        """What computes the step of a bucket; ``None`` if it cannot be recorded."""
        if (rows, length) not in of_cache.steps:
            make = self._record if self.on_gpu else _unrecorded
            try:
                of_cache.steps[rows, length] = make(of_cache, rows, length)
            except Exception as why:  # of torch or CUDA: there is another way for all of them
                log.warning("decode steps are not recorded: %s", why, exc_info=log.isEnabledFor(logging.DEBUG))
                self.failed, self._for = True, None
                return None
        return of_cache.steps[rows, length]

    def _record(self, of_cache: _OfCache, rows: int, length: int) -> Callable[[], None]:
        of_cache.write([], [], rows)  # what is computed now must change no row
        aside = torch.cuda.Stream(self._model.device)  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream(self._model.device))
        with torch.cuda.stream(aside):
            for _ in range(_REHEARSALS):
                of_cache.compute(rows, length)
        torch.cuda.current_stream(self._model.device).wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        # Other threads may use the GPU meanwhile; of this one's calls all are meant to be in the graph.
        with torch.cuda.graph(graph, pool=of_cache.pool, capture_error_mode="thread_local"):
            of_cache.compute(rows, length)
        of_cache.pool = graph.pool()
        return graph.replay


class _OfCache:
    """The steps over one cache, and what they read and write, at addresses that stay; steps of fewer rows use the
    first of them. A row that gets no token writes to the column that the cache has to spare."""

    def __init__(self, model: GPTJ, cache: KVCache) -> None:
        self.cache = weakref.ref(cache)
        self.rows, self.lengths = row_buckets(cache.rows), length_buckets(cache.max_length)
        self.steps: dict[tuple[int, int], Callable[[], None]] = {}
        self.pool: _POOL_HANDLE | None = None
        """Memory that all recorded steps share, since one runs at a time."""
        self._model, device = model, model.device
        self._spare = cache.max_length
        staged = torch.tensor([[0] * cache.rows, [self._spare] * cache.rows])
        self._staged = staged.pin_memory() if device.type == "cuda" else staged
        """On the host, in memory that a GPU reads by itself while the host goes on."""
        self._copied = torch.cuda.Event() if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._inputs = staged.to(device)
        """The rows' tokens, and the columns where they go."""
        self._row_of = torch.arange(cache.rows, device=device).unsqueeze(1)
        self.logits = torch.empty(cache.rows, model.config.vocab_size, dtype=model.dtype, device=device)
        """What the last step wrote, a row's in its place; the next step writes there again."""

    def bucket(self, rows: int) -> int:
        """The least bucket that holds ``rows`` rows."""
        return self.rows[bisect.bisect_left(self.rows, rows)]

    def write(self, ids: Sequence[int], columns: Sequence[int], rows: int) -> None:
        """The tokens of the next step over ``rows`` rows, and the columns where they go; further rows get none."""
        if self._copied is not None:
            self._copied.synchronize()  # long since, unless nobody has read the last step's logits
        none = rows - len(ids)
        self._staged[:, :rows] = torch.tensor([[*ids, *[0] * none], [*columns, *[self._spare] * none]])
        self._inputs.copy_(self._staged, non_blocking=True)
        if self._copied is not None:
            self._copied.record()

    def compute(self, rows: int, length: int) -> None:
        """Put the written tokens' keys and values into the cache and their logits into :attr:`logits`, reading
        ``length`` tokens of each row. Nothing here depends on a value: the same operations at the same addresses each
        time."""
        model, cache = self._model, self.cache()
        assert cache is not None
        ids, columns = self._inputs[:, :rows].unsqueeze(2)
        where = Where(slice(0, rows), self._row_of[:rows], columns, length)
        mask = (torch.arange(length, device=model.device) <= columns.unsqueeze(2)).unsqueeze(1)
        rotations = model.rotations[columns.clamp(max=model.max_positions - 1)]
        x = model.through_cache(ids, rotations, cache, where, mask, causal=False)
        torch.addmm(model.lm_head.bias, x, model.lm_head.weight.t(), out=self.logits[:rows])


def _unrecorded(of_cache: _OfCache, rows: int, length: int) -> Callable[[], None]:
    return lambda: of_cache.compute(rows, length)
