"""A model of GPT-J's shape with random weights, large enough that computing dominates, which calls a tool."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Final

import torch

from benchmarks.pausing.load import Ask
from benchmarks.wide import random_checkpoint
from inference_gateway.core import SamplingParams
from language_model import checkpoint
from language_model.tokenizer import ByteLevelTokenizer

WIDTH: Final = 768
LAYERS: Final = 12
"""88 million weights."""

_CALL: Final = (":", " [", "Calculator", "(", "3", "*", "4", ")", " ->")
"""What follows what; a random model writes the rest."""
_LOUD: Final = 500.0
"""How much larger the embedding of these tokens is: what they are must drown what the layers add."""
_RARE: Final = 10.0
"""How much less likely they are where they do not follow: far likelier than all others where they do."""


def random_caller(folder: Path, model: Path) -> int:
    """Write such a checkpoint with ``model``'s vocabulary; the number of weights that a step reads."""
    weights = random_checkpoint(folder, model, WIDTH, LAYERS)
    made = checkpoint.load(folder)
    with torch.no_grad():
        for before, after in itertools.pairwise(_ids(folder)):
            embedding = made.wte.weight[before]
            embedding -= embedding.mean()
            made.lm_head.weight[after] += embedding / embedding.norm()
            embedding *= _LOUD
        made.lm_head.bias[_ids(folder)[1:]] -= _RARE
    checkpoint.save(made, folder)
    return weights


def calling_asks(folder: Path, count: int, context: int, tokens: int, seed: str) -> list[Ask]:
    """``count`` random prompts of ``context`` tokens behind which the model calls the calculator, then goes on to
    ``tokens``."""
    rng, call = random.Random(seed), _ids(folder)
    others = [token for token in range(1, 2_000) if token not in call]
    fields = {
        "max_tokens": tokens, "tools": ("Calculator",), "sampling": SamplingParams(ignore_eos=True)
    }  # fmt: skip
    return [Ask((*rng.choices(others, k=context - 1), call[0]), fields) for _ in range(count)]


def _ids(folder: Path) -> list[int]:
    tokenizer = ByteLevelTokenizer.from_pretrained(folder)
    return [tokenizer.encode(text)[-1] for text in _CALL]
