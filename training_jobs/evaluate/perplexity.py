"""Perplexity of texts under a local model (table 8 of the paper), by the engine that the jobs score with.

A text is behind the model's begin-of-text token, if it has one, and each of its tokens counts once; without that
token nothing predicts the first one, which then does not count. A text that is longer than the model is read in
windows that overlap by half, so that every token but the first ones has at least half a window before it.

Calls are disabled as in the paper (section 4.1): the probability that one begins is set to 0, for every model. A token
of a text that is the opening itself keeps its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from language_model.bulk.interface import BulkModel, Targets
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import opening_id


@dataclass(frozen=True, slots=True)
class TextLoss:
    """``nats`` lost over ``tokens`` of ``texts`` texts, which are ``size`` bytes of UTF-8."""

    nats: float
    tokens: int
    texts: int
    size: int

    @property
    def perplexity(self) -> float:
        """``exp`` of the mean loss of a token: depends on the vocabulary."""
        return math.exp(self.nats / self.tokens) if self.tokens else math.nan

    @property
    def bits_per_byte(self) -> float:
        """For models of different vocabularies."""
        return self.nats / math.log(2) / self.size if self.size else math.nan

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "perplexity": self.perplexity,
            "bits_per_byte": self.bits_per_byte,
            "nats": self.nats,
            "tokens": self.tokens,
            "texts": self.texts,
            "bytes": self.size,
        }

    def __add__(self, other: TextLoss) -> TextLoss:
        return TextLoss(
            self.nats + other.nats, self.tokens + other.tokens, self.texts + other.texts, self.size + other.size
        )


def windows(ids: Sequence[int], begin: int | None, max_positions: int) -> Iterator[Targets]:
    """The sequences that give each token of ``ids`` its probability once, none longer than the model."""
    whole = ids if begin is None else [begin, *ids]
    done = 1  # tokens whose probability is known, the first one's being given
    while done < len(whole):
        start = max(0, done - max_positions // 2) if len(whole) > max_positions else 0
        end = min(len(whole), start + max_positions)
        yield Targets(tuple(whole[start:end]), tuple(range(done - start, end - start)))
        done = end


def text_losses(model: BulkModel[Any], tokenizer: ByteLevelTokenizer, texts: Sequence[str]) -> list[TextLoss]:
    """The loss of each of ``texts``, calls disabled."""
    targets = [list(windows(tokenizer.encode(text), model.begin_id, model.max_positions)) for text in texts]
    scored = iter(model.score([one for of_text in targets for one in of_text], without=opening_id(tokenizer)))
    found = []
    for text, of_text in zip(texts, targets, strict=True):
        values = [value for _ in of_text for value in next(scored)]
        found.append(TextLoss(-math.fsum(values), len(values), 1, len(text.encode())))
    return found


def count_parameters(folder: Path) -> int:
    """The number of weights in a checkpoint's ``*.safetensors``, 0 where it has none such; reads the headers only."""
    from safetensors import safe_open

    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            total += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    return total
