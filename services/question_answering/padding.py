"""Token ids of texts of different lengths, as rectangles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from tokenizers import Encoding, Tokenizer
from torch import Tensor


def encodings(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> list[Encoding]:
    """Each text with its special tokens, at most ``max_tokens``; what is cut off is the text's end, never its closing
    mark."""
    tokenizer.enable_truncation(max_tokens)
    found: list[Encoding] = tokenizer.encode_batch(list(texts))
    tokenizer.no_truncation()
    return found


def encoded(tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
    """The ids of `encodings`."""
    return [encoding.ids for encoding in encodings(tokenizer, texts, max_tokens)]


def padded(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device | None = None) -> tuple[Tensor, Tensor]:
    """Ids (rows, longest) filled up with ``pad_id``, and a mask that is true on tokens."""
    longest = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    return ids, torch.arange(longest, device=device) < lengths[:, None]


def tokens_per_pass(device: torch.device) -> int:
    """How many tokens, padding included, go through an encoder at once on this device.

    A GPU wants to be filled. On a processor few are faster: texts of one length meet, little is padding, and what the
    layers hand on stays in the caches (measured for the bundled sizes; README.md).
    """
    return 1_024 if device.type == "cpu" else 16_384


def text_batches(rows: Sequence[Sequence[int]], tokens: int) -> Iterator[list[int]]:
    """The rows' numbers in batches of at most ``tokens`` after padding (or one row), alike lengths together."""
    batch: list[int] = []
    for number in sorted(range(len(rows)), key=lambda number: len(rows[number])):
        if batch and (len(batch) + 1) * len(rows[number]) > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
