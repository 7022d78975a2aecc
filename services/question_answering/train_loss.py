"""The losses that a reader learns by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it

from language_model.head_loss import head_loss
from services.question_answering.padding import encoded, text_batches
from services.question_answering.shown import Shown
from services.question_answering.t5 import T5, DecoderMemory

Integers = npt.NDArray[np.int64]


def tokens_per_pass(device: torch.device) -> int:
    """Tokens that are encoded together in training on this device. On a processor few, so that texts of one length
    meet and little is padding; a GPU wants to be filled."""
    return 2_048 if device.type == "cpu" else 32_768


@dataclass(frozen=True, slots=True)
class Pass:
    """Texts that are encoded together: their ``ids`` and ``marks`` (texts, longest), the former with the padding id
    where a text has ended, and the numbers of the ``tokens`` among all places of these arrays."""

    ids: Integers
    marks: Integers | None
    tokens: Integers


@dataclass(frozen=True, slots=True)
class Batch:
    """Questions with what is shown and what is to be written, as arrays: made without a model, in another process.

    ``places``: for each token of the ``passes``, one after another, where it stands when each question's texts follow
    one another without padding, in rows of ``lengths``' largest. ``starts``: the places at which answers begin;
    ``found``: the questions that have one. ``labels`` (questions, longest) is to be written, ``written`` the numbers of
    its places that count."""

    passes: tuple[Pass, ...]
    places: Integers
    lengths: Integers
    starts: Integers
    found: Integers
    labels: Integers
    written: Integers


def batch_of(
    tokenizer: Tokenizer,
    shown: Sequence[Sequence[Shown]],
    written: Sequence[str],
    *,
    pad: int,
    max_tokens: int,
    per_pass: int,
) -> Batch:
    """What is ``shown`` for each question and to be ``written`` to it, at most ``max_tokens``, as a batch for
    `written_loss` with ``per_pass`` tokens encoded at once."""
    lengths = [sum(len(text.ids) for text in texts) for texts in shown]
    longest = max(lengths)
    texts = list(chain.from_iterable(shown))
    before = [
        row * longest + begin
        for row, one in enumerate(shown)
        for begin in accumulate([len(text.ids) for text in one[:-1]], initial=0)
    ]
    passes, places = [], []
    for numbers in text_batches([text.ids for text in texts], per_pass):
        ids, tokens = _filled([texts[number].ids for number in numbers], pad)
        marks = [texts[number].marks for number in numbers]
        added = None if None in marks else _filled([row for row in marks if row is not None], pad)[0]
        passes.append(Pass(ids, added, tokens))
        places += [before[number] + np.arange(len(texts[number].ids)) for number in numbers]
    starts = [begin + place for text, begin in zip(texts, before, strict=True) for place in text.starts]
    labels, counted = _filled(encoded(tokenizer, written, max_tokens), pad)
    return Batch(
        passes=tuple(passes),
        places=np.concatenate(places),
        lengths=np.asarray(lengths),
        starts=np.asarray(starts, dtype=np.int64),
        found=np.asarray([row for row, one in enumerate(shown) if any(text.starts for text in one)], dtype=np.int64),
        labels=labels,
        written=counted,
    )


def written_loss(model: T5, batch: Batch) -> Tensor:
    """Cross-entropy in nats a token of what is to be written to each question, from all texts that are shown for it at
    once; and where it begins in them, if the ``model`` is pointed. Computed where the model is.

    From the words alone a small reader learns for hours nothing but which answers are frequent. Asked where the answer
    stands it learns to find it, and its decoder copies from there.
    """
    device, pad = model.shared.weight.device, model.config.pad_id
    lengths = _tensor(batch.lengths, device)
    longest = int(batch.lengths.max())
    mask = torch.arange(longest, device=device) < lengths[:, None]
    apart = torch.cat([_encoded(model, one, device) for one in batch.passes])
    # Padding between the texts is left out: cross-attention knows no positions.
    states = apart.new_zeros(mask.numel(), apart.shape[-1]).index_copy(0, _tensor(batch.places, device), apart)
    states = states.view(*mask.shape, -1)
    labels, written = _tensor(batch.labels, device), _tensor(batch.written, device)
    hidden = model.hidden(F.pad(labels[:, :-1], (1, 0), value=pad), DecoderMemory(states, mask))
    loss = head_loss(_taken(hidden, written), model.head, None, labels.flatten()[written])
    if not model.config.pointed or not len(batch.found):
        return loss
    found, starts = _tensor(batch.found, device), torch.zeros(mask.numel(), dtype=torch.bool, device=device)
    starts[_tensor(batch.starts, device)] = True
    begins = model.begins(states.index_select(0, found), mask[found])
    begun = starts.view_as(mask)[found]
    return loss - begins.masked_fill(~begun, -torch.inf).logsumexp(-1).mean()


def _encoded(model: T5, texts: Pass, device: torch.device) -> Tensor:
    """The states of the tokens of ``texts`` (tokens, width)."""
    ids, tokens = _tensor(texts.ids, device), _tensor(texts.tokens, device)
    mask = torch.zeros(ids.numel(), dtype=torch.bool, device=device).index_fill(0, tokens, True).view_as(ids)
    marks = None if texts.marks is None else _tensor(texts.marks, device)
    return _taken(model.encode(ids, mask, marks), tokens)


def _taken(states: Tensor, places: Tensor) -> Tensor:
    """The rows ``places`` of ``states`` (.., .., width); by number, which no device has to wait for."""
    return states.flatten(0, 1).index_select(0, places)


def _filled(rows: Sequence[Sequence[int]], pad: int) -> tuple[Integers, Integers]:
    """``rows`` as one array, filled up with ``pad``, and the numbers of the places that were there."""
    longest = max(map(len, rows))
    array = np.full((len(rows), longest), pad, dtype=np.int64)
    for number, row in enumerate(rows):
        array[number, : len(row)] = row
    return array, np.concatenate([number * longest + np.arange(len(row)) for number, row in enumerate(rows)])


def _tensor(array: Integers, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(array)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)
