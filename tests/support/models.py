"""A small GPT-J for tests, of random weights."""

import copy
import functools

import torch

from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.graphs import DecodeGraphs
from language_model.native.step import NativeStep

SMALL = GPTJConfig(
    vocab_size=424, n_positions=256, n_embd=32, n_layer=2, n_head=2, rotary_dim=8, bos_token_id=0, eos_token_id=0
)
"""A shape for :func:`random_model`; the vocabulary is the small tokenizer's, padded as GPT-J's is."""


@functools.cache
def random_model(config: GPTJConfig = SMALL, seed: int = 0, spread: float = 0.3) -> GPTJ:
    """Random weights, large enough that the next token depends on everything before it."""
    model = GPTJ.from_config(config, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data.normal_(0, spread, generator=generator)
    return model.eval().requires_grad_(False)


def static_model(config: GPTJConfig = SMALL, spread: float = 0.3) -> GPTJ:
    """The weights of :func:`random_model`, with decode steps of fixed shapes."""
    model = copy.deepcopy(random_model(config, spread=spread))
    model.stepper = DecodeGraphs(model)
    return model


@functools.cache
def compiled_model(config: GPTJConfig = SMALL, seed: int = 0, spread: float = 0.3) -> GPTJ:
    """The weights of :func:`random_model`, with compiled steps.

    Raises:
        Unavailable: if there is no C compiler here.
    """
    model = copy.deepcopy(random_model(config, seed, spread))
    model.stepper = NativeStep.of(model)
    return model
