"""The loss that a reader learns by."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it

from language_model.head_loss import head_loss
from services.question_answering.padding import encoded, padded
from services.question_answering.reader import encode_apart, fused
from services.question_answering.t5 import T5, DecoderMemory

TOKENS_PER_PASS = 2_048
"""Tokens that are encoded together in training: few, so that texts of one length meet and little is padding."""


def written_loss(
    model: T5, tokenizer: Tokenizer, texts: Sequence[Sequence[str]], written: Sequence[str], *, max_tokens: int
) -> Tensor:
    """Cross-entropy in nats a token of what is to be ``written`` to each question, from all its ``texts`` at once; each
    text is cut at ``max_tokens``."""
    ids = encoded(tokenizer, list(chain.from_iterable(texts)), max_tokens)
    states, mask = fused(encode_apart(model, ids, TOKENS_PER_PASS), [len(one) for one in texts])
    pad = model.config.pad_id
    labels, counted = padded(encoded(tokenizer, written, max_tokens), pad)
    inputs = F.pad(labels[:, :-1], (1, 0), value=pad)
    hidden = model.hidden(inputs, DecoderMemory(states, mask))
    return head_loss(hidden[counted], model.head, None, labels[counted])
