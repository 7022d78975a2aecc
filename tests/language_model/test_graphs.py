"""Steps of fixed shapes equal the ordinary ones, whichever bucket computes them, and harm no other row."""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import torch

from language_model import checkpoint, graphs
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.graphs import DecodeGraphs, length_buckets, row_buckets
from tests.support.models import SMALL, random_model, static_model

LONG = GPTJConfig(97, 1024, 48, 2, 3, rotary_dim=8, bos_token_id=1, eos_token_id=1)
"""Rows long enough to have several buckets of length."""


def text(config: GPTJConfig, length: int, seed: int = 0) -> list[int]:
    return torch.randint(config.vocab_size, (length,), generator=torch.Generator().manual_seed(seed)).tolist()


def test_buckets_of_rows_hold_any_number_with_little_to_spare() -> None:
    buckets = row_buckets(64)
    assert buckets == [1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64]
    for rows in range(1, 65):
        bucket = next(bucket for bucket in buckets if bucket >= rows)
        assert bucket < 2 * rows or rows == 1
        assert bucket - rows < 8
    assert row_buckets(1) == [1]
    assert row_buckets(3) == [1, 2, 3]
    assert row_buckets(12)[-2:] == [8, 12]


def test_buckets_of_length_end_with_the_longest() -> None:
    assert length_buckets(2048) == [256, 512, 768, 1024, 1280, 1536, 1792, 2048]
    assert length_buckets(1000) == [256, 512, 768, 1000]
    assert length_buckets(100) == [100]


@pytest.mark.parametrize("lengths", [(1,), (255,), (256,), (700, 3, 300), (1, 2, 3, 4, 5, 6, 7, 8, 600)])
def test_a_step_equals_the_ordinary_one(lengths: tuple[int, ...]) -> None:
    plain, static = random_model(LONG, spread=0.1), static_model(LONG, spread=0.1)
    theirs, ours = plain.new_cache(12), static.new_cache(12)
    for row, length in enumerate(lengths):
        plain.extend(theirs, [row], [text(LONG, length, row)])
        static.extend(ours, [row], [text(LONG, length, row)])
    untouched = ours.tokens[:, len(lengths) :, : ours.max_length].clone()
    rows = list(range(len(lengths)))
    for number in range(3):
        new = [[token] for token in text(LONG, len(rows), 100 + number)]
        want = plain.extend(theirs, rows, new)
        torch.testing.assert_close(static.extend(ours, rows, new), want, atol=1e-4, rtol=1e-4)
    assert ours.lengths == theirs.lengths
    for row, length in enumerate(ours.lengths):
        torch.testing.assert_close(ours.tokens[:, row, :length], theirs.tokens[:, row, :length], atol=1e-4, rtol=1e-4)
    assert torch.equal(ours.tokens[:, len(lengths) :, : ours.max_length], untouched), "a row without a token changed"


def test_the_last_column_is_reached_and_what_others_hold_there_stays() -> None:
    static = static_model()
    cache = static.new_cache(4, 16)
    static.extend(cache, [0], [text(SMALL, 15)])
    static.extend(cache, [1, 2, 3], [text(SMALL, 16, seed) for seed in (1, 2, 3)])
    others = cache.tokens[:, 1:, :16].clone()
    logits = static.extend(cache, [0], [[7]])
    torch.testing.assert_close(logits[0], static(torch.tensor([[*text(SMALL, 15), 7]]))[0, -1], atol=2e-4, rtol=1e-4)
    assert torch.equal(cache.tokens[:, 1:, :16], others)
    with pytest.raises(ValueError, match="17 tokens do not fit a cache of 16"):
        static.extend(cache, [0], [[7]])


def graphs_of(model: GPTJ) -> DecodeGraphs:
    assert isinstance(model.stepper, DecodeGraphs)
    return model.stepper


def test_logits_stay_when_the_next_step_comes() -> None:
    static = static_model()
    cache = static.new_cache(2)
    first = static.extend(cache, [0, 1], [[5], [9]])
    kept = first.clone()
    static.extend(cache, [0, 1], [[6], [10]])
    assert torch.equal(first, kept)


def test_bfloat16_stays_near_float32(tmp_path: Path) -> None:
    full = random_model(LONG, spread=0.05)
    checkpoint.save(full, tmp_path)
    half = checkpoint.load(tmp_path, dtype=torch.bfloat16)
    half.stepper = DecodeGraphs(half)
    ids, cache = text(LONG, 300), half.new_cache(2)
    half.extend(cache, [0], [ids[:-1]])
    got, want = half.extend(cache, [0], [ids[-1:]])[0].float(), full(torch.tensor([ids]))[0, -1]
    assert (got - want).abs().max() < 0.05 * want.abs().max()


class TestRecording:
    """What surrounds CUDA's own calls, with others in their place."""

    def graphs_on_a_gpu(
        self, monkeypatch: pytest.MonkeyPatch, record: Callable[..., Callable[[], None]]
    ) -> tuple[GPTJ, DecodeGraphs]:
        model = static_model()
        monkeypatch.setattr(graphs_of(model), "on_gpu", True)
        monkeypatch.setattr(graphs_of(model), "_record", record)
        return model, graphs_of(model)

    def test_each_bucket_is_recorded_once_and_the_largest_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(graphs, "_LENGTHS_APART", 16)
        recorded: list[tuple[int, int]] = []

        def record(of_cache: graphs._OfCache, rows: int, length: int) -> Callable[[], None]:
            recorded.append((rows, length))
            return partial(of_cache.compute, rows, length)

        model, _ = self.graphs_on_a_gpu(monkeypatch, record)
        cache = model.new_cache(6, 40)
        model.prepare(cache, 3)
        assert recorded == [(rows, length) for rows in (4, 2, 1) for length in (40, 32, 16)]
        for _ in range(40):
            model.extend(cache, [0, 1, 2], [[1], [2], [3]])
        assert len(recorded) == 9
        model.extend(model.new_cache(6, 40), [0], [[1]])
        assert recorded[9:] == [(1, 16)], "another cache has other addresses"

    def test_where_it_fails_the_model_goes_on_without(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def record(of_cache: object, rows: int, length: int) -> Callable[[], None]:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")

        model, made = self.graphs_on_a_gpu(monkeypatch, record)
        cache = model.new_cache(2)
        with caplog.at_level(logging.WARNING):
            model.prepare(cache, 2)
            logits = model.extend(cache, [0, 1], [[5], [9]])
        assert made.failed
        assert caplog.text.count("decode steps are not recorded: CUDA error") == 1
        plain = random_model()
        assert torch.equal(logits, plain.extend(plain.new_cache(2), [0, 1], [[5], [9]]))
