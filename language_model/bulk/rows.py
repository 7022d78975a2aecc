"""Any other causal language model for many texts at once: whatever transformers loads (``other_models``).

A text is read by itself, but the prompt is computed once, a text's places come from one pass, and samples branch off
it, all branches of a place at once where the model takes rows together."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, Generic

import torch
from torch import Tensor

from language_model.bulk.branches import continue_all, log_probabilities
from language_model.bulk.interface import Place, PromptedText, SamplingRule, Targets, barred_elsewhere
from language_model.causal_lm import C, CausalLM

_SIDE_ROWS: Final = 16
"""Samples of a place that are continued side by side."""

_SAMPLE_TOKENS: Final = 1_024
"""Tokens of the longest sample. A row's length is chosen before the first: on a GPU all of it is taken at once."""


class BulkRows(Generic[C]):
    """A :class:`~language_model.causal_lm.CausalLM`; see :class:`~language_model.bulk.interface.BulkModel`."""

    def __init__(self, model: CausalLM[C], token_bytes: Callable[[int], bytes], begin_id: int | None) -> None:
        """Wrap ``model``; ``begin_id`` is the token that is before a text, if the model has one."""
        self.model, self.token_bytes = model, token_bytes
        self._begin_id = begin_id

    @property
    def begin_id(self) -> int | None:
        return self._begin_id

    @property
    def max_positions(self) -> int:
        return self.model.max_positions

    def hold(self, prompt: Sequence[int]) -> tuple[int, ...]:
        """The prompt's ids: a reading computes them once for all its texts."""
        return tuple(prompt)

    def read(self, prompt: tuple[int, ...], texts: Sequence[PromptedText], opening: int) -> RowsReading[C]:
        """See :meth:`BulkModel.read`."""
        return RowsReading(self, prompt, texts, opening)

    def score(self, sequences: Sequence[Targets], *, without: int | None = None) -> list[list[float]]:
        """See :meth:`BulkModel.score`; one sequence after the other, each cut behind the last token that matters."""
        return [self._score(sequence, without) if sequence.wanted else [] for sequence in sequences]

    def _score(self, sequence: Targets, without: int | None) -> list[float]:
        first, last = sequence.wanted[0], sequence.wanted[-1]
        cache = self.model.new_cache(1, last)
        if first > 1:
            self.model.extend(cache, [0], [sequence.ids[: first - 1]])
        logits = self.model.extend_every(cache, 0, sequence.ids[first - 1 : last])
        logits = logits[[at - first for at in sequence.wanted]]
        targets = [sequence.ids[at] for at in sequence.wanted]
        values = self.log_probabilities(logits, targets)
        if without is None:
            return values
        return barred_elsewhere(values, self.log_probabilities(logits, [without] * len(targets)), targets, without)

    def log_probabilities(self, logits: Tensor, tokens: Sequence[int]) -> list[float]:
        """Log probability of each of ``tokens`` by its row of ``logits`` ``[len(tokens), vocabulary]``."""
        wanted = torch.tensor(list(tokens), device=logits.device)
        found: list[float] = log_probabilities(lambda rows: rows, logits, wanted, logits.shape[1]).tolist()
        return found


class RowsReading(Generic[C]):
    """Texts read behind a prompt, each in a row of a cache; see :class:`~language_model.bulk.interface.Reading`."""

    def __init__(
        self, owner: BulkRows[C], prompt: tuple[int, ...], texts: Sequence[PromptedText], opening: int
    ) -> None:
        self._owner, self._opening = owner, opening
        self._before, self._side = len(prompt), len(texts)
        model = owner.model
        longest = len(prompt) + max((len(text.ids) for text in texts), default=0) + _SAMPLE_TOKENS
        self._cache = model.new_cache(len(texts) + _SIDE_ROWS, min(longest, model.max_positions))
        self.log_probabilities: list[list[float]] = []
        for row, text in enumerate(texts):
            if row:
                self._cache.copy(0, row, len(prompt))
            else:
                model.extend(self._cache, [0], [prompt])
            if text.first > 1:
                model.extend(self._cache, [row], [text.ids[: text.first - 1]])
            logits = model.extend_every(self._cache, row, text.ids[text.first - 1 :])
            self.log_probabilities.append(owner.log_probabilities(logits, [opening] * text.places))

    def continuations(
        self, places: Sequence[Place], streams: Sequence[Sequence[random.Random]], rule: SamplingRule
    ) -> list[list[bytes]]:
        """See :meth:`Reading.continuations`."""
        results = []
        for place, of_place in zip(places, streams, strict=True):
            made: list[bytes] = []
            for start in range(0, len(of_place), _SIDE_ROWS):
                made += self._continue(place, of_place[start : start + _SIDE_ROWS], rule)
            results.append(made)
        return results

    def _continue(self, place: Place, streams: Sequence[random.Random], rule: SamplingRule) -> list[bytes]:
        owner = self._owner
        self._cache.copy(place.text, self._side, self._before + place.length)
        stepper = _RowStepper(owner.model, self._cache, self._side)
        logits = stepper.step([0], [self._opening])
        [made] = continue_all(
            stepper, logits, [streams], rule, token_bytes=owner.token_bytes, end_ids=owner.model.end_ids
        )
        return made


class _RowStepper(Generic[C]):
    """A :class:`~language_model.bulk.branches.Stepper` whose branches are rows of a cache, from ``first`` on."""

    def __init__(self, model: CausalLM[C], cache: C, first: int) -> None:
        self._model, self._cache = model, cache
        self._rows = [first]
        self._all = range(first, cache.rows)

    def step(self, parents: Sequence[int], tokens: Sequence[int]) -> Tensor:
        old = [self._rows[parent] for parent in parents]
        free = [row for row in self._all if row not in old]
        self._rows = []
        for row in old:
            if row not in self._rows:
                self._rows.append(row)  # a branch's first child goes on in its row
            else:
                self._rows.append(free.pop())
                self._cache.copy(row, self._rows[-1], self._cache.lengths[row])
        return self._model.extend(self._cache, self._rows, [[token] for token in tokens])
