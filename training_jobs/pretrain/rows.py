"""Encoded documents on disk, and the order in which training reads them.

A row is one document, so that a row looks to the model as a prompt does at inference. Documents of like length share
a batch, which keeps padding to a few percent. The order is a pure function of seed and epoch: to resume is to skip.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from language_model.token_file import TOKENS_FILE, Tokens
from toolformer.model_files.digests import file_digest
from training_jobs.runner.parts import write_json

MANIFEST_FILE: Final = "manifest.json"
LATE: Final = "late"
"""Folder in a corpus with what is read last, if there is one."""
# Documents are sorted by length within pools of this many: large enough for little padding, small enough to stay
# shuffled.
_POOL: Final = 2048


def write_manifest(directory: Path, about: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """Write, and return, the manifest of the corpus in ``directory``: what ``about`` says, and digests of vocabulary,
    tokens and the ``others`` of its files."""
    names = (*others, "tokenizer.json", TOKENS_FILE)
    manifest = {**about, "sha256": {name: file_digest(directory / name) for name in names}}
    write_json(directory / MANIFEST_FILE, manifest)
    return manifest


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents side by side: ``ids`` ``[documents, tokens]``, padded at the end; ``learned`` marks what the loss
    counts."""

    ids: Tensor
    learned: Tensor

    def to(self, device: torch.device) -> Batch:
        """The batch on another device."""
        return Batch(self.ids.to(device), self.learned.to(device))


def epoch_batches(tokens: Tokens, *, batch_tokens: int, max_length: int, seed: int, epoch: int) -> list[list[int]]:
    """The documents of each batch of one epoch: at most ``batch_tokens`` tokens a batch, padding and all.

    Documents longer than ``max_length`` tokens are cut to it when the batch is made.
    """
    rng = random.Random(seed * 1_000_003 + epoch)
    lengths = (tokens.starts.diff().clamp(max=max_length)).tolist()
    order = list(range(tokens.documents))
    rng.shuffle(order)
    batches: list[list[int]] = []
    for start in range(0, len(order), _POOL):
        current: list[int] = []
        for number in sorted(order[start : start + _POOL], key=lengths.__getitem__):
            if current and lengths[number] * (len(current) + 1) > batch_tokens:
                batches.append(current)
                current = []
            current.append(number)
        batches.append(current)
    rng.shuffle(batches)
    return batches


def make_batch(tokens: Tokens, documents: Sequence[int], *, max_length: int) -> Batch:
    """The batch of these documents. Padding has id 0 and is never learned."""
    spans = [
        (int(tokens.starts[n]), min(int(tokens.starts[n + 1]), int(tokens.starts[n]) + max_length)) for n in documents
    ]
    widest = max(end - start for start, end in spans)
    ids = torch.zeros(len(spans), widest, dtype=torch.long)
    learned = torch.zeros(len(spans), widest, dtype=torch.bool)
    for row, (start, end) in enumerate(spans):
        ids[row, : end - start] = tokens.ids[start:end]
        learned[row, : end - start] = tokens.learned[start:end]
    return Batch(ids, learned)


def batches_from(
    tokens: Tokens, *, step: int, batch_tokens: int, max_length: int, seed: int, late: Tokens | None = None,
    late_from: int = 0,
) -> Iterator[Batch]:  # fmt: skip
    """Batches from the ``step``-th on, epoch after epoch, without end; from the ``late_from``-th on of ``late``, if
    there is such a part."""
    shape = {"batch_tokens": batch_tokens, "max_length": max_length, "seed": seed}
    if late is None:
        yield from _batches_of(tokens, step, **shape)
    else:
        yield from islice(_batches_of(tokens, step, **shape), max(0, late_from - step))
        yield from _batches_of(late, max(0, step - late_from), **shape)


def batches_until(
    over: Callable[[], bool], tokens: Tokens, late: Tokens, *, batch_tokens: int, max_length: int, seed: int
) -> Iterator[Batch]:  # fmt: skip
    """Batches of ``tokens``, epoch after epoch, until that is ``over``; then of ``late``, without end."""
    shape = {"batch_tokens": batch_tokens, "max_length": max_length, "seed": seed}
    yield from takewhile(lambda _: not over(), _batches_of(tokens, 0, **shape))
    yield from _batches_of(late, 0, **shape)


def _batches_of(tokens: Tokens, step: int, *, batch_tokens: int, max_length: int, seed: int) -> Iterator[Batch]:
    epoch, skipped = 0, step
    while True:
        batches = epoch_batches(tokens, batch_tokens=batch_tokens, max_length=max_length, seed=seed, epoch=epoch)
        for documents in batches[skipped:]:
            yield make_batch(tokens, documents, max_length=max_length)
        skipped = max(0, skipped - len(batches))
        epoch += 1
