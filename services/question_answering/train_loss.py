"""The losses that a reader learns by."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it

from language_model.head_loss import head_loss
from services.question_answering.padding import encoded, padded
from services.question_answering.reader import encode_apart, fused
from services.question_answering.shown import Shown
from services.question_answering.t5 import T5, DecoderMemory

TOKENS_PER_PASS = 2_048
"""Tokens that are encoded together in training: few, so that texts of one length meet and little is padding."""


def written_loss(
    model: T5,
    tokenizer: Tokenizer,
    shown: Sequence[Sequence[Shown]],
    written: Sequence[str],
    *,
    max_tokens: int,
) -> Tensor:
    """Cross-entropy in nats a token of what is to be ``written`` to each question, at most ``max_tokens``, from all
    texts that are ``shown`` for it at once; and where it begins in them, if the ``model`` is pointed.

    From the words alone a small reader learns for hours nothing but which answers are frequent. Asked where the answer
    stands it learns to find it, and its decoder copies from there.
    """
    states, mask = fused(encode_apart(model, list(chain.from_iterable(shown)), TOKENS_PER_PASS), [*map(len, shown)])
    pad = model.config.pad_id
    labels, counted = padded(encoded(tokenizer, written, max_tokens), pad)
    inputs = F.pad(labels[:, :-1], (1, 0), value=pad)
    hidden = model.hidden(inputs, DecoderMemory(states, mask))
    loss = head_loss(hidden[counted], model.head, None, labels[counted])
    return loss + _pointer_loss(model, states, mask, _starts(shown, mask)) if model.config.pointed else loss


def _pointer_loss(model: T5, states: Tensor, mask: Tensor, starts: Tensor) -> Tensor:
    """Cross-entropy in nats of any of the ``starts`` among the ``states`` (questions, length, width) where ``mask`` is
    true, mean over the questions that have one; 0 if none has."""
    asked = starts.any(-1)
    found = model.begins(states[asked], mask[asked])
    return -found.masked_fill(~starts[asked], -torch.inf).logsumexp(-1).sum() / max(1, int(asked.sum()))


def _starts(shown: Sequence[Sequence[Shown]], mask: Tensor) -> Tensor:
    """True where an answer begins in the texts that `fused` has put together."""
    starts = torch.zeros_like(mask)
    for row, texts in enumerate(shown):
        before = 0
        for text in texts:
            starts[row, [before + place for place in text.starts]] = True
            before += len(text.ids)
    return starts
