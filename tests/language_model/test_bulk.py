"""Many texts at once: shared prompts, branches and partial layers give what the model gives for each sequence alone."""

import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from language_model.bulk.bulk_gptj import BulkGPTJ
from language_model.bulk.interface import BulkModel, Place, PromptedText, SamplingRule, Targets, batches_by_length
from language_model.bulk.rows import BulkRows
from language_model.config import GPTJConfig
from tests.language_model.test_gptj import SHAPES
from tests.support.models import random_model


def some_ids(rng: random.Random, config: GPTJConfig, longest: int) -> tuple[int, ...]:
    return tuple(rng.randrange(config.vocab_size) for _ in range(rng.randint(1, longest)))


@pytest.mark.parametrize("config", SHAPES)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_places_scores_and_samples_of_any_texts(config: GPTJConfig, seed: int) -> None:
    rng = random.Random(seed)
    model = random_model(config, spread=0.1)
    bulk = BulkGPTJ(model, lambda token: b"%d " % token)

    def logprobs(ids: tuple[int, ...]) -> torch.Tensor:
        with torch.inference_mode():
            found: torch.Tensor = model(torch.tensor([ids]))[0].log_softmax(-1)
        return found

    prompt = some_ids(rng, config, 9)
    texts = [PromptedText(ids := some_ids(rng, config, 12), rng.randint(1, len(ids))) for _ in range(3)]
    reading = bulk.read(bulk.hold(prompt), texts, 5)
    for text, found in zip(texts, reading.log_probabilities, strict=True):
        want = logprobs((*prompt, *text.ids))[len(prompt) + text.first - 1 :, 5]
        torch.testing.assert_close(torch.tensor(found), want, atol=1e-4, rtol=0)

    sequences = []
    for _ in range(4):
        ids = (1, *some_ids(rng, config, 20))
        wanted = rng.sample(range(1, len(ids)), rng.randint(0, len(ids) - 1))
        sequences.append(Targets(ids, tuple(sorted(wanted))))
    for sequence, found in zip(sequences, bulk.score(sequences), strict=True):
        of_all = logprobs(sequence.ids)
        want = torch.tensor([float(of_all[at - 1, sequence.ids[at]]) for at in sequence.wanted])
        torch.testing.assert_close(torch.tensor(found), want, atol=1e-4, rtol=0)

    # Few different tokens are likely at a low temperature, so that branches split, go on together, and end.
    rule = SamplingRule(6, lambda written: written.endswith(b"1 "), temperature=0.3)
    places = [Place(at, rng.randint(text.first, len(text.ids))) for at, text in enumerate(texts) for _ in range(2)]
    both: tuple[BulkModel[Any], ...] = (bulk, BulkRows(model, bulk.token_bytes, None))
    made = [
        one.read(one.hold(prompt), texts, 5).continuations(
            places, [[random.Random(f"{place}{n}") for n in range(20)] for place in range(len(places))], rule
        )
        for one in both
    ]
    # A number drawn at the border of two tokens is either's, by the last bit of their probabilities.
    differ = sum(one != other for row, rows in zip(*made, strict=True) for one, other in zip(row, rows, strict=True))
    assert differ <= 2


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_batches_hold_everything_once_and_keep_to_their_budget(lengths: list[int], budget: int) -> None:
    batches = list(batches_by_length(lengths, budget))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget


def test_what_does_not_fit_is_refused() -> None:
    bulk = BulkGPTJ(random_model(), bytes)
    with pytest.raises(ValueError, match="a prompt of 0 tokens"):
        bulk.hold([])
    with pytest.raises(ValueError, match="does not fit a model of 256 positions"):
        bulk.read(bulk.hold([1] * 200), [PromptedText((1,) * 57, 1)], 5)
    with pytest.raises(ValueError, match="300 tokens do not fit"):
        bulk.score([Targets((1,) * 301, (300,))])
    with pytest.raises(ValueError, match="wanted must ascend"):
        Targets((1, 2, 3), (2, 1))
    with pytest.raises(ValueError, match="first must be between 1 and 2"):
        PromptedText((1, 2), 3)
