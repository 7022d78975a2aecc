"""Fusion-in-Decoder (Izacard and Grave, 2021): each passage is encoded apart with the question, the decoder attends to
all of them at once and writes one answer.

A pointed model writes only what its passages say: it names the likeliest places, and its decoder weighs what stands
there. So small a reader, left to write freely, miscopies names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it

from services.question_answering.formats import ANSWER_MARK
from services.question_answering.nearest import nearest_sentences
from services.question_answering.padding import padded, text_batches, tokens_per_pass
from services.question_answering.passages import PagePassage
from services.question_answering.shown import Shown, show
from services.question_answering.t5 import T5, DecoderMemory

_PLACES: Final = 4
"""Where a pointed model looks for an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the reader wrote. ``score``, 0 to 1, is the geometric mean of its tokens' probabilities, its end included;
    of a pointed model the probability of the whole answer and of the places where it stands."""

    text: str
    score: float


class Reader:
    """Answers questions from passages: by greedy decoding, or from the places that a pointed model names.

    Args:
        model: the encoder and decoder.
        tokenizer: puts T5's end mark behind a text.
        max_tokens: tokens of one passage with its question; the rest of the passage is cut off.
        max_answer_tokens: tokens of an answer; a longer one is cut off.
        marked: whether the model has learned from passages in which the question's words are marked (`shown.py`).
        sentences: how many sentences of the passages are read, each by itself (`nearest.py`); 0: the passages.
    """

    def __init__(
        self, model: T5, tokenizer: Tokenizer, *, max_tokens: int, max_answer_tokens: int, marked: bool = False,
        sentences: int = 0,
    ) -> None:  # fmt: skip
        self._model = model
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._max_answer_tokens = max_answer_tokens
        self._marked = marked
        self._sentences = sentences
        self._open = int(tokenizer.token_to_id(ANSWER_MARK) or 0)

    @torch.inference_mode()
    def answer(self, questions: Sequence[str], passages: Sequence[Sequence[PagePassage]]) -> list[Answer]:
        """One answer a question, from the passages beside it; a question may have none and is then answered from what
        the model knows by itself, as Atlas' closed book does: from one empty passage."""
        shown = [
            show(self._tokenizer, question, self._read(question, found), self._max_tokens, marked=self._marked)
            for question, found in zip(questions, passages, strict=True)
        ]
        texts, counts = [text for row in shown for text in row], [len(row) for row in shown]
        states, mask = fused(encode_apart(self._model, texts, tokens_per_pass(self._device)), counts)
        if not self._model.config.pointed:
            return self._decode(states, mask)
        return [self._copied(texts, row[where]) for texts, row, where in zip(shown, states, mask, strict=True)]

    def _read(self, question: str, found: Sequence[PagePassage]) -> Sequence[PagePassage]:
        return nearest_sentences(question, found, self._sentences) if self._sentences else found

    def _copied(self, texts: Sequence[Shown], states: Tensor) -> Answer:
        """The answer that stands in ``texts``, in whole words, whose ``states`` (length, width) follow one another. The
        likelier the decoder writes none, the lower its score."""
        config, everything = self._model.config, torch.ones(1, len(states), dtype=torch.bool, device=self._device)
        spots = [(text, at) for text in texts for at in range(len(text.ids))]
        divided = torch.tensor([at in text.inside for text, at in spots], device=self._device)
        begins = self._model.begins(states[None], everything)[0].masked_fill(divided, -torch.inf)
        likely, places = begins.topk(min(_PLACES, len(states)))
        chosen = [spots[place] for place in places.tolist()]
        rows = [text.ids[at : at + self._max_answer_tokens] for text, at in chosen]
        ends_word = [
            [at + n not in text.inside for n in range(1, len(row) + 1)]
            for (text, at), row in zip(chosen, rows, strict=True)
        ]
        whole, _ = padded(ends_word, False, self._device)
        labels, counted = padded([[self._open, *row] for row in rows], config.pad_id, self._device)
        memory = DecoderMemory(states.expand(len(rows), -1, -1), everything.expand(len(rows), -1))
        written = self._model.decode(F.pad(labels, (1, 0), value=config.pad_id), memory).float().log_softmax(-1)[:, 1:]
        copied = written[:, :-1].gather(-1, labels[:, 1:, None])[..., 0].cumsum(-1)
        # Of each place the likeliest end, which is not the end of the text.
        ends = (copied + written[:, 1:, config.eos_id]).masked_fill(
            ~(counted[:, 1:] & whole) | (labels[:, 1:] == config.eos_id), -torch.inf
        )
        best, last = ends.max(-1)
        found: dict[str, float] = {}
        for row, end, score in zip(rows, last.tolist(), (best + likely).exp().tolist(), strict=True):
            text = self._tokenizer.decode(row[: end + 1], skip_special_tokens=True).strip()
            found[text] = found.get(text, 0.0) + score
        text = max(found, key=found.__getitem__)
        return Answer(text, min(1.0, found[text])) if found[text] else Answer("", 0.0)

    def _decode(self, states: Tensor, mask: Tensor) -> list[Answer]:
        config = self._model.config
        memory = DecoderMemory(states, mask)
        last = torch.full((len(states), 1), config.pad_id, device=self._device)
        going = torch.ones(len(states), dtype=torch.bool, device=self._device)
        log_probability = torch.zeros(len(states), device=self._device)
        lengths = torch.zeros(len(states), device=self._device)
        written = []
        for _ in range(self._max_answer_tokens):
            log_probabilities = self._model.decode(last, memory)[:, -1].float().log_softmax(-1)
            best, chosen = log_probabilities.max(-1)
            log_probability += best * going
            lengths += going
            chosen = chosen.where(going, config.pad_id)
            written.append(chosen)
            going = going & (chosen != config.eos_id)
            if not going.any():
                break
            last = chosen[:, None]
        texts = self._tokenizer.decode_batch(torch.stack(written, dim=1).tolist(), skip_special_tokens=True)
        scores = (log_probability / lengths).tolist()
        return [Answer(text.strip(), math.exp(score)) for text, score in zip(texts, scores, strict=True)]

    @property
    def _device(self) -> torch.device:
        return self._model.shared.weight.device


def encode_apart(model: T5, texts: Sequence[Shown], tokens_per_pass: int) -> list[Tensor]:
    """States (length, width) of each text, without padding; at most ``tokens_per_pass`` go through the encoder at once,
    texts of alike length together. All of them have marks, or none."""
    found: dict[int, Tensor] = {}
    pad, device = model.config.pad_id, model.shared.weight.device
    for batch in text_batches([text.ids for text in texts], tokens_per_pass):
        rows, mask = padded([texts[number].ids for number in batch], pad, device)
        marks = [texts[number].marks for number in batch]
        added = None if None in marks else padded([row for row in marks if row is not None], pad, device)[0]
        # One selection and one split: cutting each row out by itself would cost training a pass over all rows a row.
        unpadded = torch.split(model.encode(rows, mask, added)[mask], [len(texts[number].ids) for number in batch])
        found |= dict(zip(batch, unpadded, strict=True))
    return [found[number] for number in range(len(texts))]


def fused(states: Sequence[Tensor], counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """States (questions, longest, width), each question's ``counts`` texts one after another, and a mask.

    Padding between the texts is left out: cross-attention knows no positions, so nothing else changes.
    """
    rest = iter(states)
    totals = [sum(len(text) for text in islice(rest, count)) for count in counts]
    lengths = torch.tensor(totals, device=states[0].device)
    mask = torch.arange(max(totals), device=lengths.device) < lengths[:, None]
    packed = torch.cat(list(states))
    return packed.new_zeros(*mask.shape, packed.shape[-1]).masked_scatter(mask[..., None], packed), mask
