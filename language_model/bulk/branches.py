"""The loop that samples continuations, many side by side.

Continuations of one place that have drawn the same tokens so far are one *branch*, computed once: most samples of a
call begin with the same words, and often all of them are equal. A branch splits where its samples draw differently, and
ends as soon as all of them have ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from language_model.bulk.interface import SamplingRule
from language_model.choosing import pick

_LOGITS_AT_ONCE = 2**23
"""Of logits at once that are turned into a distribution: 64 MiB in float64."""


class BranchStepper(Protocol):
    """Branches that a model computes side by side, all of the same number of tokens."""

    def step(self, parents: Sequence[int], tokens: Sequence[int]) -> Tensor:
        """Make new branches: the ``n``-th continues what was branch ``parents[n]`` (ascending) with ``tokens[n]``.
        Logits ``[len(parents), vocabulary]`` of what follows each."""
        ...


@dataclass(slots=True)
class _Branch:
    place: int
    samples: list[int]
    written: bytes = b""


def continue_all(
    stepper: BranchStepper,
    logits: Tensor,
    streams: Sequence[Sequence[random.Random]],
    rule: SamplingRule,
    *,
    token_bytes: Callable[[int], bytes],
    end_ids: Collection[int],
) -> list[list[bytes]]:
    """The continuations of each place; ``logits`` ``[places, vocabulary]`` are of their first token."""
    results = [[b""] * len(of_place) for of_place in streams]
    branches = [_Branch(place, list(range(len(of_place)))) for place, of_place in enumerate(streams)]
    for made in range(1, rule.limit + 1):
        uniforms = [[streams[branch.place][n].random() for n in branch.samples] for branch in branches]
        alive: list[_Branch] = []
        parents: list[int] = []
        tokens: list[int] = []
        for number, (branch, drawn) in enumerate(zip(branches, draw(logits, uniforms, rule.temperature), strict=True)):
            by_token: dict[int, list[int]] = {}
            for sample, token in zip(branch.samples, drawn, strict=True):
                by_token.setdefault(token, []).append(sample)
            for token, samples in by_token.items():
                at_end = token in end_ids
                written = branch.written if at_end else branch.written + token_bytes(token)
                if at_end or made == rule.limit or rule.ended(written):
                    for sample in samples:
                        results[branch.place][sample] = written
                else:
                    alive.append(_Branch(branch.place, samples, written))
                    parents.append(number)
                    tokens.append(token)
        if not alive:
            break
        branches, logits = alive, stepper.step(parents, tokens)
    return results


def draw(logits: Tensor, uniforms: Sequence[Sequence[float]], temperature: float) -> list[list[int]]:
    """A token for each number of ``uniforms``, by the distribution of its row of ``logits`` ``[rows, vocabulary]``."""
    rows = max(1, _LOGITS_AT_ONCE // logits.shape[1])
    drawn: list[list[int]] = []
    for start in range(0, len(uniforms), rows):
        part = uniforms[start : start + rows]
        widest = max(map(len, part))
        padded = [[*numbers, *[0.0] * (widest - len(numbers))] for numbers in part]
        numbers = torch.tensor(padded, dtype=torch.float64, device=logits.device)
        probabilities = torch.softmax(logits[start : start + rows].double() / temperature, dim=-1)
        tokens = pick(probabilities, numbers).tolist()
        drawn += [row[: len(numbers)] for row, numbers in zip(tokens, part, strict=True)]
    return drawn


def log_probabilities(head: Callable[[Tensor], Tensor], hidden: Tensor, targets: Tensor, vocabulary: int) -> Tensor:
    """Log probabilities ``[rows]`` (float32) of ``targets`` ``[rows]``, where ``head`` gives the logits ``[rows,
    vocabulary]`` of ``hidden`` ``[rows, width]``: few rows at a time, for logits of a long text fill a memory."""
    rows = max(1, _LOGITS_AT_ONCE // vocabulary)
    parts = [hidden.new_empty(0, dtype=torch.float32)]
    for start in range(0, len(hidden), rows):
        logits = head(hidden[start : start + rows]).float()
        own = logits.gather(1, targets[start : start + rows].unsqueeze(1)).squeeze(1)
        parts.append(own - logits.logsumexp(dim=-1))
    return torch.cat(parts)
