"""A bundled checkpoint in the form of the public Toolformer weights: special tokens for a call's marks."""

import dataclasses
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer

from language_model import checkpoint
from language_model.gptj import GPTJ
from toolformer.api_call import ARROW, CLOSE, OPEN, SPECIAL_MARKS

_SELDOM = 20.0
"""Nats by which a mark's text becomes less likely, so that its special token takes its place."""


def move_marks(source: Path, target: Path) -> Path:
    """Copy the checkpoint of ``source`` to ``target`` with three more tokens, in the public checkpoints' order.

    Each begins as the token of the text that it stands for, which is not written any more: what the model knew of
    calls it knows in the new form."""
    target.mkdir(parents=True)
    vocabulary = Tokenizer.from_file(str(source / "tokenizer.json"))
    written = [vocabulary.token_to_id(mark.replace(" ", "Ġ")) for mark in (OPEN, ARROW, CLOSE)]
    vocabulary.add_tokens([AddedToken(name, normalized=False) for name in reversed(SPECIAL_MARKS)])
    vocabulary.save(str(target / "tokenizer.json"))
    special = [vocabulary.token_to_id(name) for name in SPECIAL_MARKS]
    before = checkpoint.load(source)
    after = GPTJ.from_config(dataclasses.replace(before.config, vocab_size=before.config.vocab_size + len(special)))
    state = after.state_dict()
    for name, tensor in before.state_dict().items():
        state[name][: len(tensor)] = tensor
        if len(state[name]) > len(tensor):  # a row a token
            state[name][special] = tensor[written]
    state["lm_head.bias"][written] -= _SELDOM
    with torch.no_grad():
        after.load_state_dict(state)
    checkpoint.save(after, target)
    return target
