"""The losses that a reader learns by."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812, the field's name for it

from language_model.head_loss import head_loss
from services.question_answering.padding import encoded, padded
from services.question_answering.reader import encode_apart, fused
from services.question_answering.shown import Shown
from services.question_answering.t5 import T5, DecoderMemory

TOKENS_PER_PASS = 2_048
"""Tokens that are encoded together in training: few, so that texts of one length meet and little is padding."""
_SHARPNESS = 8.0
"""Scales the pointer's scores: it learns as fast as if its rate were so many times as high."""


class Pointer(nn.Module):
    """A reader in training, and the vector that finds in what it has encoded where the answer begins.

    From the words it is to write a small reader learns for hours nothing but which answers are frequent. Asked where
    the answer stands it learns to find it, and its decoder copies from there. Served is the reader alone.
    """

    def __init__(self, reader: T5) -> None:
        super().__init__()
        self.reader = reader
        self.vector = nn.Parameter(torch.zeros(reader.config.width))

    def loss(self, states: Tensor, mask: Tensor, starts: Tensor) -> Tensor:
        """Cross-entropy in nats of any of the ``starts`` among the ``states`` (questions, length, width) where ``mask``
        is true, mean over the questions that have one; 0 if none has."""
        asked = starts.any(-1)
        scores = _SHARPNESS * (states[asked].float() @ self.vector)
        found = scores.masked_fill(~mask[asked], -torch.inf).log_softmax(-1)
        return -found.masked_fill(~starts[asked], -torch.inf).logsumexp(-1).sum() / max(1, int(asked.sum()))


def written_loss(
    model: T5,
    tokenizer: Tokenizer,
    shown: Sequence[Sequence[Shown]],
    written: Sequence[str],
    *,
    max_tokens: int,
    pointer: Pointer | None = None,
) -> Tensor:
    """Cross-entropy in nats a token of what is to be ``written`` to each question, at most ``max_tokens``, from all
    texts that are ``shown`` for it at once; with a ``pointer`` its loss is added."""
    states, mask = fused(encode_apart(model, list(chain.from_iterable(shown)), TOKENS_PER_PASS), [*map(len, shown)])
    pad = model.config.pad_id
    labels, counted = padded(encoded(tokenizer, written, max_tokens), pad)
    inputs = F.pad(labels[:, :-1], (1, 0), value=pad)
    hidden = model.hidden(inputs, DecoderMemory(states, mask))
    loss = head_loss(hidden[counted], model.head, None, labels[counted])
    return loss if pointer is None else loss + pointer.loss(states, mask, _starts(shown, mask))


def _starts(shown: Sequence[Sequence[Shown]], mask: Tensor) -> Tensor:
    """True where an answer begins in the texts that `fused` has put together."""
    starts = torch.zeros_like(mask)
    for row, texts in enumerate(shown):
        before = 0
        for text in texts:
            starts[row, [before + place for place in text.starts]] = True
            before += len(text.ids)
    return starts
