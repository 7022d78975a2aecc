"""GPT-J for many texts at once, with as little computation as it takes.

What is shared is computed once and never copied: the prompt's keys and values are beside those of the texts and of
the samples, and a query looks at all three (``attention.py``). What cannot be shared: in every layer but the first a
token's keys and values depend on everything before it, so a text behind another prefix must be computed again, however
much of it stayed the same. Where it stands would not matter, for rotary positions are relative."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

import torch
from torch import Tensor

from language_model.bulk.branches import continue_all, log_probabilities
from language_model.bulk.forward import outcomes
from language_model.bulk.interface import (
    Place,
    PromptedText,
    SamplingRule,
    Targets,
    barred_elsewhere,
    batches_by_length,
)
from language_model.bulk.shared_attention import BranchAttention, KeysValues
from language_model.gptj import GPTJ

_SCORE_TOKENS: Final = 4_096
"""Tokens that are scored together, padding and all, on a CPU; a GPU takes eight times as many."""

_FEW: Final = 8
"""Wanted tokens of a sequence up to which it is scored with others of that kind."""

_BRANCHES: Final = 1_024
"""Samples that are continued side by side, at most."""


@dataclass(frozen=True, slots=True)
class HeldPrompt:
    """A prompt's keys and values, of each layer ``[heads, tokens, head_dim]``."""

    layers: tuple[KeysValues, ...]
    length: int


class BulkGPTJ:
    """A GPT-J; see :class:`~language_model.bulk.interface.BulkModel`."""

    def __init__(self, model: GPTJ, token_bytes: Callable[[int], bytes]) -> None:
        """Wrap ``model``; ``token_bytes`` gives the bytes of a token of its vocabulary."""
        self.model = model.eval().requires_grad_(False)
        self.token_bytes = token_bytes
        self._score_tokens = _SCORE_TOKENS * (1 if model.device.type == "cpu" else 8)

    @property
    def begin_id(self) -> int:
        return self.model.config.bos_token_id

    @property
    def max_positions(self) -> int:
        return self.model.max_positions

    @torch.inference_mode()
    def hold(self, prompt: Sequence[int]) -> HeldPrompt:
        """Compute the keys and values of ``prompt``.

        Raises:
            ValueError: if it is empty or longer than the model's positions.
        """
        if not 0 < len(prompt) <= self.max_positions:
            raise ValueError(f"a prompt of {len(prompt)} tokens does not fit a model of {self.max_positions} positions")
        ids = self._padded([prompt])
        _, layers = outcomes(self.model, ids, torch.zeros_like(ids[:, :1]), keep=True)
        return HeldPrompt(tuple(KeysValues(kv.keys[0], kv.values[0]) for kv in layers), len(prompt))

    @torch.inference_mode()
    def read(self, prompt: HeldPrompt, texts: Sequence[PromptedText], opening: int) -> GPTJReading:
        """Read all ``texts`` in one pass, each behind the prompt.

        Raises:
            ValueError: if a text does not fit the model with the prompt.
        """
        longest = max(len(text.ids) for text in texts)
        if prompt.length + longest > self.max_positions:
            raise ValueError(
                f"a text of {longest} tokens behind a prompt of {prompt.length} does not fit a model of "
                f"{self.max_positions} positions"
            )
        wanted = self._padded([range(text.first - 1, len(text.ids)) for text in texts])
        hidden, layers = outcomes(
            self.model, self._padded([text.ids for text in texts]), wanted, prompt.layers, keep=True
        )
        # The vocabulary head runs at the places only.
        rows, slots = _cells([text.places for text in texts])
        found = iter(self.log_probabilities(hidden[rows, slots], [opening] * len(rows)))
        likely = [[next(found) for _ in range(text.places)] for text in texts]
        return GPTJReading(self, prompt, layers, opening, likely)

    @torch.inference_mode()
    def score(self, sequences: Sequence[Targets], *, without: int | None = None) -> list[list[float]]:
        """See :meth:`BulkModel.score`. Sequences of like length go together, cut behind the last token that matters;
        the vocabulary head runs on what is wanted only.

        Raises:
            ValueError: if a sequence does not fit the model.
        """
        needed = [sequence.wanted[-1] if sequence.wanted else 0 for sequence in sequences]
        if needed and max(needed) > self.max_positions:
            raise ValueError(f"{max(needed)} tokens do not fit a model of {self.max_positions} positions")
        scores: list[list[float]] = [[] for _ in sequences]
        for chosen in self._batches(needed, [len(sequence.wanted) for sequence in sequences]):
            ids = self._padded([sequences[index].ids[: needed[index]] for index in chosen])
            # An outcome comes behind the token before the wanted one.
            wanted_at = self._padded([[at - 1 for at in sequences[index].wanted] for index in chosen])
            hidden, _ = outcomes(self.model, ids, wanted_at)
            rows, slots = _cells([len(sequences[index].wanted) for index in chosen])
            targets = [sequences[index].ids[at] for index in chosen for at in sequences[index].wanted]
            values = self.log_probabilities(hidden[rows, slots], targets)
            if without is not None:
                of_barred = self.log_probabilities(hidden[rows, slots], [without] * len(targets))
                values = barred_elsewhere(values, of_barred, targets, without)
            found = iter(values)
            for index in chosen:
                scores[index] = [next(found) for _ in sequences[index].wanted]
        return scores

    def _batches(self, needed: Sequence[int], wanted: Sequence[int]) -> Iterator[list[int]]:
        """Sequences of like length together, those of which little is wanted apart, for a short last layer."""
        few = [index for index, count in enumerate(wanted) if 0 < count <= _FEW]
        many = [index for index, count in enumerate(wanted) if count > _FEW]
        for part in (few, many):
            for batch in batches_by_length([needed[index] for index in part], self._score_tokens):
                yield [part[index] for index in batch]

    def log_probabilities(self, hidden: Tensor, targets: Sequence[int]) -> list[float]:
        """Log probability of each of ``targets``, given ``hidden`` ``[len(targets), n_embd]``."""
        wanted = torch.tensor(list(targets), device=self.model.device)
        vocabulary = self.model.config.vocab_size
        return cast("list[float]", log_probabilities(self.model.lm_head, hidden, wanted, vocabulary).tolist())

    def _padded(self, ids: Sequence[Sequence[int]]) -> Tensor:
        longest = max(map(len, ids))
        rows = [[*row, *[0] * (longest - len(row))] for row in ids]
        return torch.tensor(rows, device=self.model.device)


def _cells(counts: Sequence[int]) -> tuple[list[int], list[int]]:
    """Rows and columns of the cells of a ragged table, in reading order."""
    rows = [row for row, count in enumerate(counts) for _ in range(count)]
    return rows, [column for count in counts for column in range(count)]


class GPTJReading:
    """Texts read behind a prompt; see :class:`~language_model.bulk.interface.Reading`."""

    def __init__(
        self,
        owner: BulkGPTJ,
        prompt: HeldPrompt,
        layers: Sequence[KeysValues],
        opening: int,
        log_probabilities: list[list[float]],
    ) -> None:
        self._owner, self._prompt, self._layers, self._opening = owner, prompt, layers, opening
        self.log_probabilities = log_probabilities

    @torch.inference_mode()
    def continuations(
        self, places: Sequence[Place], streams: Sequence[Sequence[random.Random]], rule: SamplingRule
    ) -> list[list[bytes]]:
        """See :meth:`Reading.continuations`: samples branch off the texts' keys and values, of which nothing is copied
        or computed again."""
        order = sorted(range(len(places)), key=lambda index: places[index].text)
        results: list[list[bytes]] = [[] for _ in places]
        for part in _parts(order, [len(of_place) for of_place in streams]):
            stepper = _Branches(self._owner.model, self._prompt, self._layers, [places[index] for index in part])
            made = continue_all(
                stepper,
                stepper.step(range(len(part)), [self._opening] * len(part)),
                [streams[index] for index in part],
                rule,
                token_bytes=self._owner.token_bytes,
                end_ids=self._owner.model.end_ids,
            )
            for index, of_place in zip(part, made, strict=True):
                results[index] = of_place
        return results


def _parts(order: Sequence[int], samples: Sequence[int]) -> list[list[int]]:
    """``order`` in parts of at most so many samples as may be continued side by side."""
    parts: list[list[int]] = []
    room = 0
    for index in order:
        if not parts or samples[index] > room:
            parts.append([])
            room = _BRANCHES
        parts[-1].append(index)
        room -= samples[index]
    return parts


class _Branches:
    """A :class:`~language_model.bulk.branches.Stepper` over texts whose keys and values are available."""

    def __init__(self, model: GPTJ, prompt: HeldPrompt, layers: Sequence[KeysValues], places: Sequence[Place]) -> None:
        self._model = model
        device = model.device
        self._positions = torch.tensor([prompt.length + place.length for place in places], device=device)
        self._attention = BranchAttention(
            prompt.layers,
            layers,
            torch.tensor([place.text for place in places], device=device),
            torch.tensor([place.length for place in places], device=device),
        )

    def step(self, parents: Sequence[int], tokens: Sequence[int]) -> Tensor:
        model, attention = self._model, self._attention
        if len(parents) != attention.branches or list(parents) != list(range(len(parents))):
            chosen = torch.tensor(list(parents), device=model.device)
            self._positions = self._positions[chosen]
            attention.keep(chosen)
        x = model.wte(torch.tensor(list(tokens), device=model.device))
        rotations = model.rotations[self._positions].unsqueeze(1)
        for number, block in enumerate(model.layers()):
            normed = block.ln_1(x).unsqueeze(1)
            queries, keys, values = (side[:, :, 0] for side in block.project(normed, rotations))
            attended = attention.attend(number, queries, keys, values)
            x = block.finish(x.unsqueeze(1), normed, attended.unsqueeze(2)).squeeze(1)
        attention.advance()
        self._positions = self._positions + 1
        return cast(Tensor, model.lm_head(model.ln_f(x)))
