"""Sampling against its definitions, on given logits."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.core import CompletionRequest, SamplingParams
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.sampling import Sampler, Scored, adjust, draw
from inference_gateway.engine.scoring import UNSCORED
from inference_gateway.engine.sequence import Sequence
from tests.inference_gateway.scripted_machine import TOOLS
from tests.support.models import SMALL
from tests.support.vocabularies import small_tokenizer

VOCABULARY = CallVocabulary.of(small_tokenizer(), [SMALL.eos_token_id])


def sequence(top_k: int, **sampling: Any) -> Sequence:
    request = CompletionRequest(
        (1,), max_tokens=9, tools=tuple(TOOLS), api_top_k=top_k, sampling=SamplingParams(**sampling)
    )
    return Sequence(request, DecodingMachine(request, VOCABULARY, TOOLS), lambda actions: None)


@pytest.mark.parametrize("rank", [1, 2, 3, 10, 11, 50])
@pytest.mark.parametrize("top_k", [0, 1, 3, 10])
def test_a_call_starts_exactly_where_the_start_is_among_the_top_k(rank: int, top_k: int) -> None:
    start = VOCABULARY.start_ids[0]
    order = [i for i in range(424) if i not in VOCABULARY.openings | VOCABULARY.closers]
    order.insert(rank - 1, start)
    logits = torch.full((1, 424), -100.0)
    for place, token in enumerate(order):
        logits[0, token] = -float(place)
    chosen = Sampler(VOCABULARY, torch.device("cpu")).choose(logits, [sequence(top_k)])
    expected = (start, True) if rank <= top_k else (next(t for t in order if t != start), False)
    assert chosen == [expected]


def test_no_rule_leaks_to_a_neighbour() -> None:
    start = VOCABULARY.start_ids[0]
    logits = torch.zeros(3, 424)
    logits[:, start] = 5.0
    logits[:, 7] = 4.0
    chosen = Sampler(VOCABULARY, torch.device("cpu")).choose(logits, [sequence(0), sequence(10), sequence(0)])
    assert chosen == [(7, False), (start, True), (7, False)]


def test_top_p_leaves_out_the_tail() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05] + [1e-9] * 420]))
    sampler = Sampler(VOCABULARY, torch.device("cpu"))
    drawn = {
        sampler.choose(logits.clone(), [sequence(0, temperature=1.0, top_p=0.7, seed=seed)])[0][0] for seed in range(60)
    }
    assert drawn == {0, 1}


def random_logits(rows: int = 1, seed: int = 0) -> Tensor:
    return 3 * torch.randn(rows, 424, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("top_k", "top_p"), [(0, 1.0), (1, 1.0), (5, 1.0), (0, 0.5), (0, 0.9), (20, 0.7), (3, 0.01), (1000, 1.0)]
)
@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
def test_a_draw_is_the_inverse_of_the_cut_distribution(top_k: int, top_p: float, temperature: float) -> None:
    """The oracle walks the definition one token at a time."""
    logits = random_logits()
    weights = [math.exp(value / temperature) for value in logits[0].tolist()]
    likely = sorted(range(len(weights)), key=lambda token: -weights[token])[: top_k or None]
    kept, total = [], sum(weights[token] for token in likely)
    for token in likely:
        kept.append(token)
        if top_p < 1 and sum(weights[token] for token in kept) >= top_p * total:
            break
    kept_total = sum(weights[token] for token in kept)
    sampling = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p)
    for uniform in (0.0, 0.1, 0.25, 0.5, 0.77, 0.999):
        passed, expected = 0.0, -1
        for token in sorted(kept):
            passed += weights[token]
            if passed > uniform * kept_total:
                expected = token
                break
        assert draw(logits, [sampling], [uniform]) == [expected]


def test_rows_are_drawn_each_by_its_own_parameters() -> None:
    logits = random_logits(4)
    sampling = [
        SamplingParams(1.0),
        SamplingParams(0.5, top_k=3),
        SamplingParams(1.5, 0.6),
        SamplingParams(2.0, 0.9, 9),
    ]
    uniforms = [0.2, 0.4, 0.6, 0.8]
    alone = [draw(logits[row : row + 1], [sampling[row]], [uniforms[row]])[0] for row in range(4)]
    assert draw(logits, sampling, uniforms) == alone


def test_draws_follow_the_distribution() -> None:
    logits = torch.log(torch.tensor([[0.6, 0.3, 0.1] + [0.0] * 421]))
    one = sequence(0, temperature=1.0, seed=3)
    sampler = Sampler(VOCABULARY, torch.device("cpu"))
    drawn = Counter(sampler.choose(logits.clone(), [one])[0][0] for _ in range(2000))
    assert set(drawn) == {0, 1, 2}
    assert abs(drawn[0] - 1200) < 100
    assert abs(drawn[1] - 600) < 100


def test_penalties_and_biases_change_logits_as_openai_defines() -> None:
    logits = torch.zeros(424)
    one = sequence(0, frequency_penalty=0.5, presence_penalty=0.25, logit_bias=((7, 2.0), (9, -100.0)))
    one.machine.ids += [3, 7, 7, 7]
    adjust(logits, one)
    changed = {token: logits[token].item() for token in (0, 3, 7, 9)}
    assert changed == {0: 0.0, 3: -0.75, 7: 2.0 - 1.75, 9: -100.0}


def test_a_repetition_penalty_counts_prompt_and_completion_as_vllm_defines() -> None:
    logits = torch.full((424,), 0.0)
    logits[[1, 3, 5, 7]] = torch.tensor([3.0, -2.0, 3.0, 1.0])
    one = sequence(0, repetition_penalty=2.0, frequency_penalty=0.5, logit_bias=((7, 2.0),))
    one.machine.ids += [3, 3, 7]  # the prompt is token 1
    adjust(logits, one)
    changed = {token: logits[token].item() for token in (0, 1, 3, 5, 7)}
    assert changed == {0: 0.0, 1: 1.5, 3: -4.0 - 1.0, 5: 3.0, 7: (1.0 + 2.0) / 2 - 0.5}


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_min_p_leaves_out_what_is_unlikely_beside_the_likeliest(temperature: float) -> None:
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05] + [1e-9] * 420]))
    scaled = [share ** (1 / temperature) for share in (0.5, 0.3, 0.15, 0.05)]
    for min_p in (0.05, 0.2, 0.5, 0.9, 1.0):
        sampling = SamplingParams(temperature, min_p=min_p)
        drawn = {draw(logits, [sampling], [number / 1000])[0] for number in range(1000)}
        assert drawn == {token for token, share in enumerate(scaled) if share >= min_p * scaled[0]}


def test_min_p_is_taken_before_top_p() -> None:
    """Of 0.4, 0.35 and 0.25 the last falls to min_p; of what is left the first alone has more than half."""
    logits = torch.log(torch.tensor([[0.4, 0.35, 0.25] + [1e-9] * 421]))
    sampling = SamplingParams(1.0, top_p=0.5, min_p=0.7)
    assert {draw(logits, [sampling], [number / 100])[0] for number in range(100)} == {0}


def test_the_end_is_not_chosen_before_the_least_number_of_tokens() -> None:
    sampler, end = Sampler(VOCABULARY, torch.device("cpu")), SMALL.eos_token_id
    one = sequence(0, min_tokens=2, stop_token_ids=(9,))
    chosen = []
    for _ in range(3):
        logits = torch.zeros(1, 424)
        logits[0, [end, 9, 7]] = torch.tensor([3.0, 2.0, 1.0])
        [(token, _)] = sampler.choose(logits, [one])
        chosen.append(token)
        one.machine.accept(token)
    assert chosen == [7, 7, end]


def test_a_bias_decides_a_greedy_choice() -> None:
    sampler = Sampler(VOCABULARY, torch.device("cpu"))
    logits = torch.zeros(2, 424)
    logits[:, 7] = 1.0
    biased = sequence(0, logit_bias=((11, 50.0),))
    assert sampler.choose(logits, [biased, sequence(0)]) == [(11, False), (7, False)]


def test_scores_are_of_the_models_own_distribution() -> None:
    logits = random_logits(3)
    expected = torch.log_softmax(logits, dim=-1)
    asking, silent = sequence(0, logit_bias=((11, 50.0),)), sequence(0)
    asking.request = CompletionRequest((1,), logprobs=3, sampling=asking.request.sampling)
    scored = Scored(logits, [silent, asking, silent])
    Sampler(VOCABULARY, torch.device("cpu")).choose(logits, [silent, asking, silent])
    first, second, third = scored.of([5, 11, 5])
    assert first == third == UNSCORED
    assert second.logprob == pytest.approx(expected[1, 11].item())
    best = expected[1].topk(3)
    assert second.top == tuple(zip(best.indices.tolist(), best.values.tolist(), strict=True))
