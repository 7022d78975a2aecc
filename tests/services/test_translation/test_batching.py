"""Items of several callers are worked on together, in order, and nobody waits long for company."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import pytest

from services.translation.batching import Batcher

LONG = 3_600.0
"""Longer than any test: a batch that waits this long for company waits for ever."""


class Doubler:
    """Doubles numbers, remembers the batches it was given, and can be held up."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.began = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def __call__(self, items: list[int]) -> Sequence[int]:
        self.batches.append(items)
        self.began.set()
        assert self.may_go_on.wait(timeout=20)
        if -1 in items:
            raise ValueError("minus one")
        return [2 * item for item in items]


@pytest.fixture
def work() -> Doubler:
    return Doubler()


@pytest.fixture
async def patient(work: Doubler) -> AsyncIterator[Batcher[int, int]]:
    """Waits for a full batch of four."""
    batcher = Batcher(work, max_batch=4, max_wait_s=LONG)
    batcher.start()
    yield batcher
    work.may_go_on.set()
    await batcher.stop()


@pytest.fixture
async def hasty(work: Doubler) -> AsyncIterator[Batcher[int, int]]:
    """Waits for nobody."""
    batcher = Batcher(work, max_batch=4, max_wait_s=0)
    batcher.start()
    yield batcher
    work.may_go_on.set()
    await batcher.stop()


async def test_concurrent_calls_share_a_batch(patient: Batcher[int, int], work: Doubler) -> None:
    results = await asyncio.gather(*(patient.submit([number]) for number in range(4)))
    assert results == [[0], [2], [4], [6]]
    assert work.batches == [[0, 1, 2, 3]]


async def test_a_large_call_is_cut_into_batches_and_put_together(patient: Batcher[int, int], work: Doubler) -> None:
    assert await patient.submit(range(8)) == [2 * number for number in range(8)]
    assert work.batches == [[0, 1, 2, 3], [4, 5, 6, 7]]


async def test_one_alone_is_not_kept_waiting(hasty: Batcher[int, int], work: Doubler) -> None:
    assert await hasty.submit([21]) == [42]
    assert work.batches == [[21]]


async def test_what_comes_while_a_batch_runs_goes_together_next(hasty: Batcher[int, int], work: Doubler) -> None:
    work.may_go_on.clear()
    first = asyncio.create_task(hasty.submit([1]))
    await asyncio.to_thread(work.began.wait, 20)
    others = [asyncio.create_task(hasty.submit([number])) for number in (2, 3, 4)]
    await asyncio.sleep(0)
    work.may_go_on.set()
    assert await asyncio.gather(first, *others) == [[2], [4], [6], [8]]
    assert work.batches == [[1], [2, 3, 4]]


async def test_nothing_to_do_is_done_at_once(patient: Batcher[int, int], work: Doubler) -> None:
    assert await patient.submit([]) == []
    assert work.batches == []


async def test_a_caller_who_left_is_not_worked_for(hasty: Batcher[int, int], work: Doubler) -> None:
    work.may_go_on.clear()
    first = asyncio.create_task(hasty.submit([1]))
    await asyncio.to_thread(work.began.wait, 20)
    leaver = asyncio.create_task(hasty.submit([2, 3]))
    stayer = asyncio.create_task(hasty.submit([4]))
    await asyncio.sleep(0)
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    work.may_go_on.set()
    assert (await first, await stayer) == ([2], [8])
    assert work.batches == [[1], [4]]


async def test_a_caller_who_leaves_during_the_work_harms_nobody(hasty: Batcher[int, int], work: Doubler) -> None:
    work.may_go_on.clear()
    leaver = asyncio.create_task(hasty.submit([1]))
    await asyncio.to_thread(work.began.wait, 20)
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    work.may_go_on.set()
    assert await hasty.submit([5]) == [10]


async def test_a_failed_batch_fails_its_callers_and_no_others(hasty: Batcher[int, int], work: Doubler) -> None:
    with pytest.raises(ValueError, match="minus one"):
        await hasty.submit([1, -1])
    assert await hasty.submit([2]) == [4]


async def test_those_who_wait_learn_that_it_stopped(work: Doubler) -> None:
    batcher = Batcher(work, max_batch=4, max_wait_s=LONG)
    batcher.start()
    waiting = asyncio.create_task(batcher.submit([1]))
    await asyncio.sleep(0)
    await batcher.stop()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert work.batches == []


async def test_stopping_twice_or_before_the_start_is_harmless(work: Doubler) -> None:
    batcher = Batcher(work, max_batch=4, max_wait_s=LONG)
    await batcher.stop()
    await batcher.stop()
