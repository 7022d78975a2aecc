"""Which texts form a step, and how they are dealt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_jobs.finetune.steps import StepPlan, dealt, steps_of


def padded(parts: list[list[int]], lengths: list[int]) -> list[int]:
    return [len(part) * max(lengths[text] for text in part) for part in parts]


def test_every_epoch_reads_each_text_once_and_each_in_another_order() -> None:
    drawn = [text for step in steps_of(10, batch=4, steps=5, seed=3) for text in step]
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == list(range(10))
    assert drawn[:10] != drawn[10:]
    assert list(steps_of(10, batch=4, steps=5, seed=4)) != list(steps_of(10, batch=4, steps=5, seed=3))


@given(lengths=st.lists(st.integers(1, 1_024), min_size=1, max_size=40), groups=st.integers(1, 12))
def test_texts_are_dealt_whole_and_so_that_the_largest_part_is_small(lengths: list[int], groups: int) -> None:
    texts = list(range(len(lengths)))
    if groups > len(texts):
        with pytest.raises(ValueError, match="cannot form"):
            dealt(texts, lengths, groups)
        return
    parts = dealt(texts, lengths, groups)
    assert len(parts) == groups
    assert all(parts)
    assert sorted(text for part in parts for text in part) == texts
    # In parts of equal numbers of texts, longest first, the largest cannot be smaller.
    order = sorted(texts, key=lambda text: -lengths[text])
    size = -(-len(texts) // groups)
    even = [order[start : start + size] for start in range(0, len(order), size)]
    assert max(padded(parts, lengths)) <= max(padded(even, lengths))


@given(
    lengths=st.lists(st.integers(2, 200), min_size=1, max_size=60),
    batch=st.integers(4, 16),
    processes=st.integers(1, 4),
    most=st.integers(200, 1_000),
)
def test_processes_share_the_texts_of_each_step(lengths: list[int], batch: int, processes: int, most: int) -> None:
    plan = StepPlan.of(lengths, batch=batch, steps=3, seed=1, processes=processes, micro_batch_tokens=most)
    of_process = [list(plan.micro_batches(process)) for process in range(processes)]
    per_step = plan.accumulation
    assert {len(parts) for parts in of_process} == {3 * per_step}
    for step, texts in enumerate(steps_of(len(lengths), batch=batch, steps=3, seed=1)):
        parts = [part for own in of_process for part in own[step * per_step : (step + 1) * per_step]]
        assert sorted(text for part in parts for text in part) == sorted(texts)
        assert plan.tokens()[step] == sum(lengths[text] for text in texts)
        if per_step * processes < batch - processes:  # not already a text each
            assert max(padded(parts, lengths)) <= most


def test_more_processes_than_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="raise --batch"):
        StepPlan.of([3, 3], batch=2, steps=1, seed=0, processes=3, micro_batch_tokens=8)
