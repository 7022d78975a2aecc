"""Annotating and filtering with a model on a real vLLM, beside the same model at hand."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Final

import pytest

from language_model.bulk.interface import Place, PromptedText, SamplingRule, Targets
from language_model.bulk.loading import load_bulk
from language_model.bulk.server import BulkServer, ServerSettings
from tests.vllm.harness import MODEL, SERVED_AS, TOKENIZER, prompts

pytestmark = pytest.mark.vllm

POSITIONS: Final = 1024
LOCAL, _ = load_bulk(MODEL)
[OPENING] = TOKENIZER.encode(" [")
TOLD_OF: Final = math.log(1 / 21)
"""A likelier token is among the 20 likeliest, which are all that the server reports."""
TEXTS: Final = [TOKENIZER.encode(text) for text in prompts("word problems", 20)]


@pytest.fixture(scope="module")
def remote(server: str) -> Iterator[BulkServer]:
    with BulkServer(ServerSettings(server, SERVED_AS, POSITIONS, begin_id=0)) as opened:
        yield opened


@pytest.mark.parametrize(
    ("without", "near"),
    [(None, 1e-4), (OPENING, -math.log1p(-math.exp(TOLD_OF)))],
    ids=["all tokens", "one taken out, if the server reports it"],
)
def test_prompts_are_scored_as_by_the_model(remote: BulkServer, without: int | None, near: float) -> None:
    targets = [Targets((0, *ids), tuple(range(1, len(ids) + 1))) for ids in TEXTS]
    expected = LOCAL.score(targets, without=without)
    for want, got in zip(expected, remote.score(targets, without=without), strict=True):
        assert got == pytest.approx(want, abs=near)


def test_places_for_calls_are_those_of_the_model(remote: BulkServer) -> None:
    texts = [PromptedText(tuple(ids), 1) for ids in TEXTS]
    expected = LOCAL.read(LOCAL.hold((0,)), texts, OPENING).log_probabilities
    reported = 0
    for want, got in zip(expected, remote.read(remote.hold((0,)), texts, OPENING).log_probabilities, strict=True):
        for a, b in zip(want, got, strict=True):
            assert b == pytest.approx(a, abs=1e-4) if b > -math.inf else a < TOLD_OF
            reported += b > -math.inf
    assert reported > len(TEXTS)


def test_samples_are_drawn_as_likely_as_the_model_finds_them(remote: BulkServer) -> None:
    [text] = [PromptedText(tuple(ids), len(ids)) for ids in TEXTS[:1]]
    reading = remote.read(remote.hold((0,)), [text], OPENING)
    places = [Place(0, len(text.ids))] * 8
    streams = [[random.Random(100 * place + number) for number in range(50)] for place in range(8)]
    rule = SamplingRule(limit=1, ended=bool)
    drawn = Counter(sample.decode() for of_place in reading.continuations(places, streams, rule) for sample in of_place)
    assert drawn.total() == 400
    for token, count in drawn.most_common(4):
        [id_] = TOKENIZER.encode(token)
        [[likely]] = LOCAL.score([Targets((0, *text.ids, OPENING, id_), (len(text.ids) + 2,))])
        assert count / 400 == pytest.approx(math.exp(likely), abs=0.1)  # four standard deviations and more
