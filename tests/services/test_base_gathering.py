"""Calls that come one by one, answered in batches."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from services.base.gathering import Gatherer


class Slow:
    """Answers a batch on request; some requests fail by themselves."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def __call__(self, batch: Sequence[str]) -> list[str | Exception]:
        self.batches.append(list(batch))
        self.begun.set()
        await self.may_answer.wait()
        if "spoil" in batch:
            raise RuntimeError("the whole batch")
        return [ValueError(request) if request == "bad" else request.upper() for request in batch]


@pytest.fixture
async def slow() -> Slow:
    return Slow()


@pytest.fixture
async def gatherer(slow: Slow) -> AsyncIterator[Gatherer[str, str]]:
    gatherer = Gatherer(slow, max_batch=3, wait_s=0.0)
    gatherer.start()
    yield gatherer
    await gatherer.stop()


async def test_what_comes_while_a_batch_runs_goes_together(gatherer: Gatherer[str, str], slow: Slow) -> None:
    first = asyncio.create_task(gatherer.ask("a"))
    await slow.begun.wait()
    others = [asyncio.create_task(gatherer.ask(request)) for request in "bcde"]
    await asyncio.sleep(0)
    slow.may_answer.set()
    assert await asyncio.gather(first, *others) == list("ABCDE")
    assert slow.batches == [["a"], ["b", "c", "d"], ["e"]]


async def test_a_lone_request_waits_for_company_until_the_batch_is_full(slow: Slow) -> None:
    slow.may_answer.set()
    gatherer = Gatherer(slow, max_batch=3, wait_s=3_600.0)
    gatherer.start()
    async with asyncio.timeout(60):
        assert await asyncio.gather(*map(gatherer.ask, "abc")) == list("ABC")
    assert slow.batches == [["a", "b", "c"]]
    await gatherer.stop()


async def test_the_wait_for_company_is_bounded(slow: Slow) -> None:
    slow.may_answer.set()
    gatherer = Gatherer(slow, max_batch=3, wait_s=0.001)
    gatherer.start()
    async with asyncio.timeout(60):
        assert await gatherer.ask("a") == "A"
    await gatherer.stop()


async def test_a_failure_stays_with_its_request(gatherer: Gatherer[str, str], slow: Slow) -> None:
    slow.may_answer.set()
    results = await asyncio.gather(*map(gatherer.ask, ("a", "bad", "c")), return_exceptions=True)
    assert [results[0], results[2]] == ["A", "C"]
    assert isinstance(results[1], ValueError)


async def test_a_failed_batch_fails_alone(gatherer: Gatherer[str, str], slow: Slow) -> None:
    slow.may_answer.set()
    with pytest.raises(RuntimeError, match="whole batch"):
        await gatherer.ask("spoil")
    assert await gatherer.ask("a") == "A"


async def test_a_client_that_has_left_costs_nothing(gatherer: Gatherer[str, str], slow: Slow) -> None:
    first = asyncio.create_task(gatherer.ask("a"))
    await slow.begun.wait()
    gone, stays = asyncio.create_task(gatherer.ask("b")), asyncio.create_task(gatherer.ask("c"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    slow.may_answer.set()
    assert [await first, await stays] == ["A", "C"]
    assert slow.batches == [["a"], ["c"]]


async def test_many_at_once_are_cut_into_batches_and_put_together(gatherer: Gatherer[str, str], slow: Slow) -> None:
    slow.may_answer.set()
    assert await gatherer.ask_all("abcdefg") == list("ABCDEFG")
    assert slow.batches == [["a", "b", "c"], ["d", "e", "f"], ["g"]]
    assert await gatherer.ask_all([]) == []


async def test_who_leaves_takes_all_its_requests_along(gatherer: Gatherer[str, str], slow: Slow) -> None:
    first = asyncio.create_task(gatherer.ask("a"))
    await slow.begun.wait()
    leaver, stayer = asyncio.create_task(gatherer.ask_all("bc")), asyncio.create_task(gatherer.ask("d"))
    await asyncio.sleep(0.01)
    leaver.cancel()
    await asyncio.gather(leaver, return_exceptions=True)
    slow.may_answer.set()
    assert [await first, await stayer] == ["A", "D"]
    assert slow.batches == [["a"], ["d"]]


async def test_without_a_limit_all_that_wait_go_together(slow: Slow) -> None:
    gatherer = Gatherer(slow)
    gatherer.start()
    first = asyncio.create_task(gatherer.ask("a"))
    await slow.begun.wait()
    others = asyncio.create_task(gatherer.ask_all("bcdefgh"))
    await asyncio.sleep(0.01)
    slow.may_answer.set()
    assert [await first, *await others] == list("ABCDEFGH")
    assert slow.batches == [["a"], list("bcdefgh")]
    await gatherer.stop()


async def test_stopping_twice_or_before_the_start_is_harmless(slow: Slow) -> None:
    gatherer = Gatherer(slow)
    await gatherer.stop()
    await gatherer.stop()


async def test_stopping_leaves_nobody_waiting(slow: Slow) -> None:
    gatherer = Gatherer(slow, max_batch=1, wait_s=0.0)
    gatherer.start()
    asked = [asyncio.create_task(gatherer.ask(request)) for request in "ab"]
    await slow.begun.wait()
    await gatherer.stop()
    async with asyncio.timeout(60):
        results = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
