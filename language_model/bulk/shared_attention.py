"""Attention of branches to a prompt that all share, to a text that some share, and to tokens of their own.

The three sets of keys stay where they are. A query's scores for each are found by a product of their own: for the
prompt one product for all branches, for the texts one of each text's branches side by side. The softmax then runs over
all scores together, so the result is that of attention to one long sequence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class KeysValues(NamedTuple):
    """Keys and values of one layer, each ``[..., heads, tokens, head_dim]``, keys rotated to their positions."""

    keys: Tensor
    values: Tensor


class BranchAttention:
    """The keys and values that branches look at. All branches have the same number of tokens of their own."""

    def __init__(
        self, prompt: Sequence[KeysValues], texts: Sequence[KeysValues], text_of: Tensor, lengths: Tensor
    ) -> None:
        """Of each layer, ``prompt`` ``[heads, tokens, head_dim]`` and ``texts`` ``[texts, heads, tokens, head_dim]``.
        A branch sees the first ``lengths[branch]`` tokens of text ``text_of[branch]`` (ascending)."""
        self._prompt = prompt
        self._texts = list(texts)
        self._text_of, self._lengths = text_of, lengths
        self._own: list[KeysValues | None] = [None] * len(prompt)
        self._fresh: list[KeysValues | None] = [None] * len(prompt)
        self._arrange()

    @property
    def branches(self) -> int:
        return len(self._text_of)

    def keep(self, parents: Tensor) -> None:
        """Let the ``n``-th branch be what was branch ``parents[n]``; ``parents`` ascends."""
        self._text_of, self._lengths = self._text_of[parents], self._lengths[parents]
        for layer, own in enumerate(self._own):  # one at a time, so that never two copies of all are there
            self._fresh[layer] = None
            self._own[layer] = own and KeysValues(own.keys[parents], own.values[parents])
        self._arrange()

    def attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """What each branch's query finds, ``[branches, heads, head_dim]``; ``queries``, ``keys`` and ``values`` have
        the same shape and are of the branches' newest token, which sees itself."""
        own = self._own[layer]
        fresh = KeysValues(keys.unsqueeze(2), values.unsqueeze(2))
        if own is not None:
            fresh = KeysValues(torch.cat([own.keys, fresh.keys], 2), torch.cat([own.values, fresh.values], 2))
        self._fresh[layer] = fresh
        prompt, texts = self._prompt[layer], self._texts[layer]
        queries = queries / math.sqrt(queries.shape[-1])
        in_prompt = queries.transpose(0, 1) @ prompt.keys.transpose(1, 2)
        in_texts = self._gathered(self._spread(queries) @ texts.keys.transpose(2, 3))
        in_own = (fresh.keys @ queries.unsqueeze(-1)).squeeze(-1)
        in_texts = in_texts.masked_fill(self._hidden, -torch.inf)
        scores = torch.cat([in_prompt.transpose(0, 1), in_texts, in_own], dim=-1)
        shares = torch.softmax(scores.float(), dim=-1).to(queries.dtype)
        to_texts, to_own = in_prompt.shape[-1], in_prompt.shape[-1] + in_texts.shape[-1]
        found = (shares[..., :to_texts].transpose(0, 1) @ prompt.values).transpose(0, 1)
        found = found + self._gathered(self._spread(shares[..., to_texts:to_own]) @ texts.values)
        return found + (shares[..., to_own:].unsqueeze(2) @ fresh.values).squeeze(2)

    def advance(self) -> None:
        """The newest token of every layer is one of the branches' own now."""
        self._own = list(self._fresh)

    def _arrange(self) -> None:
        """Give each branch a slot among those of its text."""
        counts = torch.bincount(self._text_of, minlength=len(self._texts[0].keys))
        # Texts that no branch needs any more cost time at every step, letting go of them costs a copy: so by halves.
        if 2 * (counts > 0).sum() <= len(counts):
            used = counts.nonzero().squeeze(1)
            self._texts = [KeysValues(kv.keys[used], kv.values[used]) for kv in self._texts]
            self._text_of = ((counts > 0).cumsum(0) - 1)[self._text_of]
            counts = counts[used]
        self._shape = (len(counts), int(counts.max()))
        rank = torch.arange(self.branches, device=counts.device) - (counts.cumsum(0) - counts)[self._text_of]
        self._slots = self._text_of * self._shape[1] + rank
        columns = torch.arange(self._texts[0].keys.shape[2], device=counts.device)
        self._hidden = (columns >= self._lengths.unsqueeze(1)).unsqueeze(1)

    def _spread(self, of_branches: Tensor) -> Tensor:
        """``[branches, heads, n]`` as ``[texts, heads, slots, n]``, each branch in its slot, zeros elsewhere."""
        texts, slots = self._shape
        spread = of_branches.new_zeros(texts * slots, *of_branches.shape[1:])
        spread[self._slots] = of_branches
        return spread.view(texts, slots, *of_branches.shape[1:]).transpose(1, 2)

    def _gathered(self, spread: Tensor) -> Tensor:
        """The reverse of :meth:`_spread`."""
        return spread.transpose(1, 2).flatten(0, 1)[self._slots]
