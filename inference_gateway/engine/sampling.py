"""Choosing the next token of every sequence of a step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection
from collections.abc import Sequence as Many
from functools import lru_cache
from typing import Final

import numpy as np
import torch
from torch import Tensor

from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import SamplingParams
from inference_gateway.decoding import StepRule
from inference_gateway.engine.scoring import UNSCORED, Score, score
from inference_gateway.engine.sequence import Sequence
from language_model.choosing import pick
from language_model.native.choice import most_likely, most_likely_and_rank, rank

_CACHED_PLACES: Final = 1024
"""Sets of tokens whose places are remembered; see `NameTokens`."""


class Sampler:
    """Applies each sequence's rule (section 4.2 of the paper), then what its request says of sampling."""

    def __init__(self, vocabulary: CallVocabulary, device: torch.device) -> None:
        self._starts = vocabulary.start_ids
        self._places: Callable[[frozenset[int]], Tensor] = lru_cache(_CACHED_PLACES)(
            lambda tokens: torch.tensor(sorted(tokens), device=device)
        )

    def choose(self, logits: Tensor, sequences: Many[Sequence]) -> list[tuple[int, bool]]:
        """A token for each row of ``logits`` ``[len(sequences), vocabulary]``, and whether it was taken as an API
        start. ``logits`` may be changed.

        The API-start token is taken where it ranks among the rule's top k by the model's own logits, whatever the
        temperature, penalties and biases. These two do not change what a call's name is either."""
        rules = [sequence.machine.rule() for sequence in sequences]
        logits = logits if logits.dtype == torch.float32 else logits.float()
        special = [row for row, sequence in enumerate(sequences) if not sequence.greedy]
        starts, tokens = self._most_likely(rules, logits, sequences, special)
        # Few tokens break a rule, so what is most likely is looked for again only where one of them was found.
        if again := [row for row, rule in enumerate(rules) if rule.forbids(tokens[row])]:
            self._apply(rules, logits, again)
            for row, token in zip(again, most_likely(logits[again]), strict=True):
                tokens[row] = token
        if drawing := [row for row in special if sequences[row].random is not None]:
            sampling = [sequences[row].request.sampling for row in drawing]
            uniforms = [random.random() for row in drawing if (random := sequences[row].random)]
            for row, token in zip(drawing, draw(logits[drawing], sampling, uniforms), strict=True):
                tokens[row] = token
        return [(starts[row], True) if row in starts else (token, False) for row, token in enumerate(tokens)]

    def leave(self, logits: Tensor, sequences: Many[Sequence]) -> dict[int, int]:
        """Change ``logits`` ``[len(sequences), vocabulary]`` so that anyone who samples from them chooses as `choose`
        does; the rows in which only the API-start token is left for that, with that token."""
        rules = [sequence.machine.rule() for sequence in sequences]
        asking = [row for row, rule in enumerate(rules) if rule.start_top_k > 0] if self._starts else []
        ranked = rank(logits, self._starts) if asking else []
        self._change(rules, logits, sequences, range(len(sequences)))
        starts = {row: ranked[row][0] for row in asking if ranked[row][1] < rules[row].start_top_k}
        for row, token in starts.items():
            only(logits[row], token)
        return starts

    def _most_likely(
        self, rules: Many[StepRule], logits: Tensor, sequences: Many[Sequence], special: Many[int]
    ) -> tuple[dict[int, int], list[int]]:
        """The rows where a call may start now, with the API-start token of each; and each row's most likely token, of
        ``special`` rows by what their rule and their request leave of ``logits``."""
        asking = [row for row, rule in enumerate(rules) if rule.start_top_k > 0] if self._starts else []
        if asking and not special:
            tokens, ranked = most_likely_and_rank(logits, self._starts)
        else:
            ranked = rank(logits, self._starts) if asking else []
            if special:
                self._change(rules, logits, sequences, special)
            tokens = most_likely(logits)
        return {row: ranked[row][0] for row in asking if ranked[row][1] < rules[row].start_top_k}, tokens

    def _change(self, rules: Many[StepRule], logits: Tensor, sequences: Many[Sequence], rows: Many[int]) -> None:
        """Change ``rows`` of ``logits`` as their rules and their requests say."""
        self._apply(rules, logits, rows)
        for row in rows:
            if sequences[row].request.sampling.adjusts and not rules[row].allowed:
                adjust(logits[row], sequences[row])

    def _apply(self, rules: Many[StepRule], logits: Tensor, rows: Many[int]) -> None:
        """Make what ``rules`` forbid impossible in ``rows`` of ``logits``."""
        alike: dict[frozenset[int], list[int]] = {}
        for row in rows:
            if rules[row].banned:
                alike.setdefault(rules[row].banned, []).append(row)
            if rules[row].allowed:
                places = self._places(rules[row].allowed)
                kept = logits[row, places]
                logits[row] = -math.inf
                logits[row, places] = kept
        for banned, those in alike.items():
            logits[torch.tensor(those, device=logits.device).unsqueeze(1), self._places(banned)] = -math.inf


class Scored:
    """The log probabilities of a step's tokens for the sequences that ask; made before the sampler sees the logits."""

    def __init__(self, logits: Tensor, sequences: Many[Sequence]) -> None:
        self._asked = {
            row: top for row, sequence in enumerate(sequences) if (top := sequence.request.logprobs) is not None
        }
        if self._asked:
            self._log_probabilities = torch.log_softmax(logits[list(self._asked)].float(), dim=-1)

    def of(self, tokens: Many[int]) -> list[Score]:
        """The score of each row's chosen token."""
        scores = [UNSCORED] * len(tokens)
        if self._asked:
            chosen = [tokens[row] for row in self._asked]
            found = score(self._log_probabilities, chosen, max(self._asked.values()))
            for (row, top), (logprob, best) in zip(self._asked.items(), found, strict=True):
                scores[row] = Score(logprob, best[:top])
        return scores


def only(logits: Tensor, token: int) -> None:
    """Leave nothing but ``token`` in ``logits`` ``[vocabulary]``."""
    logits[:] = -math.inf
    logits[token] = 0.0


def adjust(logits: Tensor, sequence: Sequence) -> None:
    """Change the ``logits`` ``[vocabulary]`` of ``sequence`` as its request's sampling says: biases first, then
    penalties (OpenAI's definition, vLLM's for repetition), and no end of the text where that would be too early."""
    sampling, made = sequence.request.sampling, sequence.machine.ids
    if sequence.bias is not None:
        tokens, biases = sequence.bias
        logits.index_add_(0, tokens.to(logits.device), biases.to(logits.device))
    if sampling.repetition_penalty != 1:
        there = _indices({*sequence.request.prompt_ids, *made}, logits.device)
        values, penalty = logits[there], sampling.repetition_penalty
        logits[there] = torch.where(values > 0, values / penalty, values * penalty)
    if made and (sampling.frequency_penalty or sampling.presence_penalty):
        counts = Counter(made)
        times = _indices(counts.values(), logits.device)
        logits[_indices(counts, logits.device)] -= sampling.frequency_penalty * times + sampling.presence_penalty
    if sequence.machine.too_short:
        logits[list(sequence.machine.end_ids)] = float("-inf")


def _indices(numbers: Collection[int], device: torch.device) -> Tensor:
    """``numbers`` as a tensor. Torch reads a thousand from a list in 0.8 ms and holds Python's lock meanwhile, once a
    row and step; numpy takes an eighth."""
    return torch.from_numpy(np.fromiter(numbers, np.int64, len(numbers))).to(device)


def draw(logits: Tensor, sampling: Many[SamplingParams], uniforms: Many[float]) -> list[int]:
    """A token for each row of ``logits`` ``[rows, vocabulary]``: where its uniform number falls in the cumulative
    distribution (:func:`~language_model.choosing.pick`)."""
    temperatures = torch.tensor([one.temperature for one in sampling], device=logits.device)
    probabilities = torch.softmax(logits.double() / temperatures.unsqueeze(1), dim=-1)
    filtered = [row for row, one in enumerate(sampling) if one.top_k > 0 or one.top_p < 1 or one.min_p > 0]
    if filtered:
        probabilities[filtered] = _likely(probabilities[filtered], [sampling[row] for row in filtered])
    numbers = torch.tensor(uniforms, dtype=torch.float64, device=logits.device).unsqueeze(1)
    tokens: list[int] = pick(probabilities, numbers).squeeze(1).tolist()
    return tokens


def _likely(probabilities: Tensor, sampling: Many[SamplingParams]) -> Tensor:
    """``probabilities`` with 0 for tokens below ``min_p`` times the greatest, outside of each row's ``top_k`` tokens
    and, of what they hold, outside of the smallest set that reaches ``top_p`` (Holtzman et al., 2020)."""
    vocabulary, device = probabilities.shape[1], probabilities.device
    top_k = torch.tensor([one.top_k or vocabulary for one in sampling], device=device).unsqueeze(1)
    # At 1 nothing is to be cut, and rounding of the sum must not cut either.
    shares = [one.top_p if one.top_p < 1 else math.inf for one in sampling]
    top_p = torch.tensor(shares, dtype=torch.float64, device=device).unsqueeze(1)
    min_p = torch.tensor([one.min_p for one in sampling], dtype=torch.float64, device=device).unsqueeze(1)
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    ordered = ordered.masked_fill(ordered < min_p * ordered[:, :1], 0)
    ordered = ordered.masked_fill(torch.arange(vocabulary, device=device) >= top_k, 0)
    cumulative = ordered.cumsum(dim=-1)
    ordered = ordered.masked_fill(cumulative - ordered >= top_p * cumulative[:, -1:], 0)
    return torch.zeros_like(probabilities).scatter_(1, order, ordered)
