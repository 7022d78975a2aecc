"""The cache's rows beside a plain list of what each must hold, and the memory that they take."""

import random
import sys
from pathlib import Path

import pytest
import torch

from language_model.config import GPTJConfig
from language_model.kv_cache import KVCache
from tests.support.models import SMALL


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_hold_what_was_put_there(dtype: torch.dtype) -> None:
    cache, rng = KVCache(SMALL, 4, 64, dtype=dtype), random.Random(0)
    expected: list[list[float]] = [[] for _ in range(4)]
    for step in range(400):
        number = step % 256  # bfloat16 has no more whole numbers in a row
        row, other = rng.randrange(4), rng.randrange(4)
        match rng.randrange(4):
            case 0 if len(expected[row]) < 64:
                cache.tokens[:, row, len(expected[row])] = float(number)
                cache.lengths[row] += 1
                expected[row].append(float(number))
            case 1:
                length = rng.randint(0, len(expected[row]))
                cache.cut(row, length)
                del expected[row][length:]
            case 2:
                cache.swap(row, other)
                expected[row], expected[other] = expected[other], expected[row]
            case 3 if row != other:
                length = rng.randint(0, len(expected[row]))
                cache.copy(row, other, length)
                expected[other] = expected[row][:length]
        assert cache.lengths == list(map(len, expected))
        for at, values in enumerate(expected):
            assert (cache.tokens[:, at, : len(values)] == torch.tensor(values).view(1, -1, 1, 1)).all()


def test_what_a_row_lacks_cannot_be_copied_or_cut() -> None:
    cache = KVCache(SMALL, 2, 64)
    with pytest.raises(ValueError, match="cannot copy 1 tokens of row 0, which holds 0"):
        cache.copy(0, 1, 1)
    with pytest.raises(ValueError, match="cannot cut row 1 of 0 tokens to 2"):
        cache.cut(1, 2)


def resident() -> int:
    """Bytes of memory that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def most_resident() -> int:
    """The most bytes of memory that this process had since its peak was reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="only there is memory taken page by page")
def test_memory_is_taken_as_rows_fill_and_given_back_as_they_empty() -> None:
    config = GPTJConfig(vocab_size=16, n_positions=2048, n_embd=256, n_layer=4, n_head=4, rotary_dim=16)
    before = resident()
    cache = KVCache(config, 64, 2048)
    row = cache.nbytes // 64
    assert cache.nbytes == 2**30
    assert resident() - before < row
    cache.tokens[:, 3] = 1.0
    cache.lengths[3] = 2048
    assert row * 0.9 < resident() - before < row * 1.5
    for length in range(2_000, 99, -100):  # as rows are that make way bit by bit
        cache.cut(3, length)
    assert resident() - before < row * 0.5
    assert (cache.tokens[:, 3, :100] == 1.0).all()


@pytest.mark.skipif(sys.platform != "linux", reason="only there is memory taken page by page")
def test_of_a_wide_model_fewer_tokens_are_worth_giving_back() -> None:
    config = GPTJConfig(vocab_size=16, n_positions=512, n_embd=4096, n_layer=8, n_head=16)
    cache = KVCache(config, 1, 512, dtype=torch.bfloat16)
    cache.tokens[:, 0, :200] = 1.0
    cache.lengths[0] = 200
    full = resident()
    cache.cut(0, 100)  # 13 MB
    assert full - resident() > 8 * 2**20
    assert (cache.tokens[:, 0, :100] == 1.0).all()


@pytest.mark.skipif(sys.platform != "linux", reason="only there is memory taken page by page")
@pytest.mark.parametrize("other", [0, 400], ids=["with an empty row", "with a full row"])
def test_a_swap_of_a_wide_models_rows_takes_little_memory_besides(other: int) -> None:
    config = GPTJConfig(vocab_size=16, n_positions=512, n_embd=4096, n_layer=12, n_head=16)
    cache = KVCache(config, 2, 512, dtype=torch.bfloat16)
    for row, length in enumerate((500, other)):  # 98 MB, and nothing or 79 MB
        cache.tokens[:, row, :length] = row + 1.0
        cache.lengths[row] = length
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = resident()
    cache.swap(0, 1)
    assert most_resident() - before < 40 * 2**20
    assert cache.lengths == [other, 500]
    assert (cache.tokens[:, 1, :500] == 1.0).all()
    assert (cache.tokens[:, 0, :other] == 2.0).all()
