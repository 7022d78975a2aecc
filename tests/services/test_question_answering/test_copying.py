"""The reader's start: a circuit that copies, in weights that have learned nothing."""

import pytest
import torch

from services.question_answering.copying import start_as_copier
from services.question_answering.t5 import T5, DecoderMemory, T5Config

CONFIG = T5Config(2_000, 128, 32, 256, 3, 2, 4, tied=True)


@torch.inference_mode()
def rank_of_the_next_word(model: T5) -> float:
    """Where the token that follows in the source stands among the source's 40, when the answer has come to the one
    before it; 19.5 by chance."""
    random = torch.Generator().manual_seed(1)
    source = torch.stack([torch.randperm(1_990, generator=random)[:40] + 10 for _ in range(8)])
    memory = DecoderMemory(model.encode(source, torch.ones_like(source, dtype=torch.bool)), source > 0)
    logits = model.decode(source[:, :-1], memory)
    among = logits.gather(-1, source[:, None].expand(-1, 39, -1))
    following = logits.gather(-1, source[:, 1:, None])
    return (among > following).sum(-1).float().median().item()


def test_it_leans_to_what_follows_in_the_source() -> None:
    plain, copier = T5(CONFIG).initialise(0), start_as_copier(T5(CONFIG).initialise(0), 0)
    assert rank_of_the_next_word(plain) > 15
    assert rank_of_the_next_word(copier) < 12


def test_the_same_seed_gives_the_same_start() -> None:
    first, second, other = (start_as_copier(T5(CONFIG).initialise(0), seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize(
    "config", [T5Config(2_000, 128, 32, 256, 3, 2, 4), T5Config(2_000, 32, 32, 64, 1, 1, 1, tied=True)]
)
def test_a_model_it_cannot_start(config: T5Config) -> None:
    with pytest.raises(ValueError, match="tied embeddings"):
        start_as_copier(T5(config), 0)
