"""Choosing the next token of every sequence of a step."""

from __future__ import annotations

from collections.abc import Sequence as Many

import torch
from torch import Tensor

from inference_gateway.core import SamplingParams
from inference_gateway.decoding import CallVocabulary
from inference_gateway.engine.sequence import Sequence


class Sampler:
    """Applies each sequence's rule (section 4.2 of the paper), then its temperature and ``top_p``."""

    def __init__(self, vocabulary: CallVocabulary, device: torch.device) -> None:
        self._starts = torch.tensor(vocabulary.start_ids, device=device)
        self._openings = torch.tensor(vocabulary.opening_ids, device=device)

    def choose(self, logits: Tensor, sequences: Many[Sequence]) -> list[tuple[int, bool]]:
        """A token for each row of ``logits`` ``[len(sequences), vocabulary]``, and whether it was taken as an API
        start.

        The API-start token is taken where it ranks among the rule's top k by the model's own logits, whatever the
        temperature."""
        rules = [sequence.machine.rule() for sequence in sequences]
        logits = logits.float()
        banned = [row for row, rule in enumerate(rules) if rule.ban_calls]
        if banned:
            logits[torch.tensor(banned, device=logits.device).unsqueeze(1), self._openings] = float("-inf")
        tokens = logits.argmax(dim=-1).tolist()
        for row, sequence in enumerate(sequences):
            if sequence.generator is not None:
                tokens[row] = _sample(logits[row], sequence.request.sampling, sequence.generator)
        forced = [False] * len(rules)
        asking = [row for row, rule in enumerate(rules) if rule.start_top_k > 0]
        if asking:
            asked = logits if len(asking) == len(rules) else logits[torch.tensor(asking, device=logits.device)]
            best, which = asked[:, self._starts].max(dim=-1)
            ranks = (asked > best.unsqueeze(1)).sum(dim=-1).tolist()
            starts = self._starts[which].tolist()
            for row, rank, start in zip(asking, ranks, starts, strict=True):
                if rank < rules[row].start_top_k:
                    tokens[row], forced[row] = start, True
        return list(zip(tokens, forced, strict=True))


def _sample(logits: Tensor, sampling: SamplingParams, generator: torch.Generator) -> int:
    """Draw from the smallest set of tokens whose probability reaches ``top_p`` (Holtzman et al., 2020)."""
    probabilities = torch.softmax(logits.cpu() / sampling.temperature, dim=-1)
    if sampling.top_p < 1:
        ordered, order = probabilities.sort(descending=True)
        before = ordered.cumsum(dim=-1) - ordered
        probabilities[order[before >= sampling.top_p]] = 0
    return int(torch.multinomial(probabilities, 1, generator=generator))
