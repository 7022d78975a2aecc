"""What choosing a token asks of logits: in compiled code where that is loaded, else by torch."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor

from language_model.native import library


def most_likely(logits: Tensor) -> list[int]:
    """The most likely token of each row of ``logits`` ``[rows, vocabulary]``."""
    code = _code_for(logits)
    if code is None:
        return cast("list[int]", logits.argmax(dim=-1).tolist())
    rows, vocabulary = logits.shape
    tokens = (ctypes.c_long * rows)()
    code.most_likely(logits.data_ptr(), rows, vocabulary, logits.stride(0), ctypes.addressof(tokens))
    return tokens[:]


def rank(logits: Tensor, candidates: Sequence[int]) -> list[tuple[int, int]]:
    """For each row of ``logits`` ``[rows, vocabulary]``: the most likely of ``candidates``, and how many tokens are
    more likely than that."""
    code = _code_for(logits)
    if code is None:
        chosen, ranks = torch.stack(_rank(logits, candidates)).tolist()
        return [(candidates[index], count) for index, count in zip(chosen, ranks, strict=True)]
    rows, vocabulary = logits.shape
    best, above = (ctypes.c_long * rows)(), (ctypes.c_long * rows)()
    of = array("l", candidates)
    code.rank(
        *(logits.data_ptr(), rows, vocabulary, logits.stride(0)),
        *(of.buffer_info()[0], len(of), ctypes.addressof(best), ctypes.addressof(above)),
    )
    return list(zip(best, above, strict=True))


def most_likely_and_rank(logits: Tensor, candidates: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Both of the above, for which a GPU is waited for once."""
    if _code_for(logits) is not None:
        return most_likely(logits), rank(logits, candidates)
    which, above = _rank(logits, candidates)
    tokens, chosen, ranks = torch.stack([logits.argmax(dim=-1), which, above]).tolist()
    return tokens, [(candidates[index], count) for index, count in zip(chosen, ranks, strict=True)]


def _rank(logits: Tensor, candidates: Sequence[int]) -> tuple[Tensor, Tensor]:
    """For each row: the index of the most likely candidate, and how many tokens are more likely."""
    # not by a list, which would be sent to a GPU each time
    best, which = torch.stack([logits[:, token] for token in candidates], dim=1).max(dim=-1)
    return which, (logits > best.unsqueeze(1)).sum(dim=-1)


def _code_for(logits: Tensor) -> ctypes.PyDLL | None:
    """The compiled code, if it is loaded and can read ``logits``."""
    readable = logits.dtype == torch.float32 and logits.is_cpu and logits.stride(1) == 1
    return library.short_calls() if readable else None
