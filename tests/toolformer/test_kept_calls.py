"""Results kept in memory: which calls a client spares a service, and which it must not."""

import asyncio
import datetime as dt
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.redis_server import free_port
from tests.support.waiting import until
from tests.toolformer.test_tool_client import tools
from tests.toolformer.tool_service import (
    Behaviour,
    Seen,
    Service,
    answer,
    answers,
    capitals,
    in_turn,
    serve,
    silent,
    status,
)
from toolformer.result_cache import MAX_CHARS, CacheUnavailable, CallKey, MemoryCache
from toolformer.tool_client import RetryPolicy, ToolClient, ToolResult

DAY = dt.date(2026, 11, 20)
ONCE = RetryPolicy(max_attempts=1)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Lookups(Counter[str]):
    """Counts what became of look-ups."""

    def saw(self, tool: str, lookup: str) -> None:
        self[lookup] += 1


@asynccontextmanager
async def kept(
    behave: Behaviour, cache: MemoryCache | None = None, **changes: Any
) -> AsyncIterator[tuple[Service, ToolClient, Lookups]]:
    """A service that behaves so, a client of it with a cache, and what became of its look-ups."""
    seen, clock, cache = Lookups(), changes.pop("clock", Clock()), cache or MemoryCache()
    async with serve(behave) as service:
        registry = tools(service.url, **{"timeout_s": 60.0} | changes)
        async with ToolClient(registry, ONCE, cache=cache, saw_lookup=seen.saw, clock=clock) as client:
            yield service, client, seen


def posts(behave: Behaviour) -> Behaviour:
    """A service that is ready and behaves so where it is called."""

    async def either(seen: Seen, writer: asyncio.StreamWriter) -> None:
        await (capitals("Calculator") if seen.method == "GET" else behave)(seen, writer)

    return either


def outputs(results: Sequence[ToolResult]) -> list[str | None]:
    return [result.output for result in results]


class Held:
    """A service of capitals that answers when `released`."""

    def __init__(self, behave: Behaviour) -> None:
        self.behave = behave
        self.released = asyncio.Event()
        self.arrived = asyncio.Event()

    async def __call__(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if seen.method == "POST":
            self.arrived.set()
            await self.released.wait()
        await self.behave(seen, writer)


class TestKept:
    async def test_an_identical_call_is_not_sent_twice(self) -> None:
        async with kept(capitals("Calculator")) as (service, client, seen):
            first = await client.call("Calculator", "a")
            again = await client.call("Calculator", "a", date=DAY)
            many = await client.call_many("Calculator", ["a", "b"])
        assert (first.cached, again.cached, [r.cached for r in many]) == (False, True, [True, False])
        assert (again.output, again.attempts) == ("A", 0)
        assert outputs(many) == ["A", "B"]
        assert service.calls == [{"input": "a"}, {"calls": [{"input": "b"}]}]
        assert seen == {"miss": 2, "hit": 2}

    async def test_none_is_kept_unless_asked_for(self) -> None:
        async with serve(capitals("Calculator")) as service, ToolClient(tools(service.url)) as client:
            assert not (await client.call("Calculator", "a")).cached
            assert not (await client.call("Calculator", "a")).cached
        assert [one.path for one in service.seen] == ["/call", "/call"]

    async def test_today_is_not_kept_but_a_date_is(self) -> None:
        dates = (None, None, DAY, dt.datetime(2026, 11, 20, 8, tzinfo=dt.UTC), dt.date(2026, 11, 21))
        async with kept(capitals("Calendar")) as (_, client, _seen):
            cached = [(await client.call("Calendar", "", date=date)).cached for date in dates]
            many = await client.call_many("Calendar", ["", ""], dates=[None, DAY])
        assert cached == [False, False, False, True, False]
        assert [result.cached for result in many] == [False, True]

    @pytest.mark.parametrize(
        "error", [answers(lambda _: b"garbage"), status(503), status(500)], ids=["garbage", "503", "500"]
    )
    async def test_errors_are_not_kept(self, error: Behaviour) -> None:
        async with kept(posts(in_turn(error, capitals("Calculator")))) as (_, client, _seen):
            assert not (await client.call("Calculator", "a")).ok
            assert (await client.call("Calculator", "a")).output == "A"

    async def test_a_services_own_error_is_not_kept(self) -> None:
        no = {"code": "division_by_zero", "message": "no"}
        behave = answers(lambda j: answer("Calculator", j, output=None, error=no))
        async with kept(behave) as (service, client, _):
            for _ in range(2):
                assert not (await client.call("Calculator", "1/0")).ok
        assert len(service.calls) == 2

    async def test_tools_that_are_not_pure_are_always_asked(self) -> None:
        async with kept(capitals("Calculator"), pure=False) as (service, client, seen):
            for _ in range(2):
                assert not (await client.call("Calculator", "a")).cached
        assert [one.path for one in service.seen] == ["/call", "/call"]
        assert not seen

    async def test_the_one_used_longest_ago_goes_first(self) -> None:
        async with kept(capitals("Calculator"), MemoryCache(2)) as (_, client, _seen):
            cached = [(await client.call("Calculator", text)).cached for text in ("a", "b", "a", "c", "a", "b")]
        assert cached == [False, False, True, False, True, False]

    async def test_a_result_is_believed_for_its_age(self) -> None:
        clock = Clock()
        async with kept(capitals("Calculator"), MemoryCache(8, 60.0, clock=clock), clock=clock) as (_, client, _seen):
            await client.call("Calculator", "a")
            clock.now += 59.9
            assert (await client.call("Calculator", "a")).cached
            clock.now += 0.2
            assert not (await client.call("Calculator", "a")).cached

    async def test_a_long_call_is_not_kept(self) -> None:
        async with kept(capitals("Calculator")) as (_, client, _seen):
            for text, cached in (("a" * (MAX_CHARS // 2), True), ("a" * (MAX_CHARS // 2 + 1), False)):
                await client.call("Calculator", text)
                assert (await client.call("Calculator", text)).cached is cached


class TestVersions:
    async def test_another_version_in_the_registry_is_another_call(self) -> None:
        cache = MemoryCache()
        async with serve(capitals("Calculator")) as service:
            for version, cached in (("1", False), ("1", True), ("2", False)):
                client = ToolClient(tools(service.url, version=version, timeout_s=60.0), cache=_Shared(cache))
                async with client:
                    assert (await client.call("Calculator", "a")).cached is cached

    async def test_another_version_of_the_service_is_noticed(self) -> None:
        clock, behave = Clock(), capitals("Calculator", "1.0.0+old")

        async def exchanged(seen: Seen, writer: asyncio.StreamWriter) -> None:
            await behave(seen, writer)

        async with kept(exchanged, clock=clock) as (service, client, _):
            await client.call("Calculator", "a")
            behave = capitals("Calculator", "1.0.0+new")
            assert (await client.call("Calculator", "a")).cached  # heard of a moment ago
            clock.now += 11
            assert not (await client.call("Calculator", "a")).cached
            assert (await client.call("Calculator", "a")).cached
        assert len(service.calls) == 2

    async def test_an_answer_counts_for_the_version_it_names(self) -> None:
        async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
            await capitals("Calculator", "old" if seen.method == "GET" else "new")(seen, writer)

        cache = MemoryCache()
        async with kept(behave, cache) as (_, client, _seen):
            await client.call("Calculator", "a")
            keys = [CallKey("Calculator", "1", version, "a", None) for version in ("old", "new")]
            assert await cache.get(keys) == [None, "A"]
            assert (await client.call("Calculator", "a")).cached

    async def test_a_service_that_went_away_is_still_answered_for(self) -> None:
        clock, cache = Clock(), MemoryCache()
        port = free_port()
        async with ToolClient(tools(f"http://127.0.0.1:{port}"), ONCE, cache=cache, clock=clock) as client:
            async with serve(capitals("Calculator", "1"), port):
                await client.call("Calculator", "a")
            clock.now += 60
            assert (await client.call("Calculator", "a")).cached
            assert not (await client.call("Calculator", "b")).ok

    async def test_nothing_is_kept_of_a_service_that_never_said_its_version(self) -> None:
        async def behave(seen: Seen, writer: asyncio.StreamWriter) -> None:
            await (status(503) if seen.method == "GET" else capitals("Calculator"))(seen, writer)

        async with kept(behave) as (_, client, seen):
            for _ in range(2):
                result = await client.call("Calculator", "a")
                assert (result.output, result.cached) == ("A", False)
        assert not seen

    async def test_a_version_that_is_never_reported_takes_none_of_a_callers_patience_beyond_its_end(self) -> None:
        async with kept(silent) as (_, client, _seen):
            result = await client.call("Calculator", "a", timeout=0.05)
        assert result.error is not None
        assert result.error.code == "timeout"


class TestTogether:
    async def test_identical_calls_at_once_are_made_once(self) -> None:
        held = Held(capitals("Calculator"))
        async with kept(held) as (service, client, seen):
            calls = [asyncio.create_task(client.call("Calculator", "a")) for _ in range(20)]
            await held.arrived.wait()
            await until(lambda: seen["shared"] == 19)
            held.released.set()
            results = await asyncio.gather(*calls)
        assert outputs(results) == ["A"] * 20
        assert sorted(result.cached for result in results) == [False] + [True] * 19
        assert service.calls == [{"input": "a"}]

    async def test_in_a_batch_too_and_between_batches(self) -> None:
        held = Held(capitals("Calculator"))
        async with kept(held) as (service, client, seen):
            first = asyncio.create_task(client.call_many("Calculator", ["a", "b", "a"]))
            await held.arrived.wait()
            second = asyncio.create_task(client.call_many("Calculator", ["b", "c"]))
            await until(lambda: seen["shared"] == 2)
            held.released.set()
            assert outputs(await first) == ["A", "B", "A"]
            assert outputs(await second) == ["B", "C"]
        assert service.calls == [{"calls": [{"input": "a"}, {"input": "b"}]}, {"calls": [{"input": "c"}]}]

    async def test_an_error_in_a_batch_counts_for_all_its_identical_calls(self) -> None:
        no = {"code": "empty", "message": "no"}
        behave = answers(lambda j: {"calls": [answer("Calculator", c, output=None, error=no) for c in j["calls"]]})
        async with kept(behave) as (service, client, _):
            results = await client.call_many("Calculator", ["a", "a"])
        assert [result.error and result.error.code for result in results] == ["empty", "empty"]
        assert len(service.calls) == 1

    async def test_who_waits_for_a_caller_that_leaves_asks_himself(self) -> None:
        held = Held(capitals("Calculator"))
        async with kept(held) as (_, client, seen):
            first = asyncio.create_task(client.call("Calculator", "a"))
            await held.arrived.wait()
            second = asyncio.create_task(client.call("Calculator", "a"))
            await until(lambda: seen["shared"] == 1)
            first.cancel()
            held.released.set()
            result = await second
        assert (result.output, result.cached) == ("A", False)

    async def test_another_callers_error_is_his_own(self) -> None:
        held = Held(posts(in_turn(status(500), capitals("Calculator"))))
        async with kept(held) as (_, client, seen):
            unlucky = asyncio.create_task(client.call("Calculator", "a"))
            await held.arrived.wait()
            lucky = asyncio.create_task(client.call("Calculator", "a"))
            await until(lambda: seen["shared"] == 1)
            held.released.set()
            assert not (await unlucky).ok
            assert (await lucky).output == "A"

    async def test_nobody_waits_for_another_beyond_his_patience(self) -> None:
        held = Held(capitals("Calculator"))
        async with kept(held) as (_, client, seen):
            patient = asyncio.create_task(client.call("Calculator", "a", timeout=30))
            await held.arrived.wait()
            hasty = await client.call("Calculator", "a", timeout=0.05)
            held.released.set()
            assert (await patient).ok
        assert hasty.error is not None
        assert hasty.error.code == "timeout"
        assert seen["shared"] == 1


class TestUnavailable:
    async def test_calls_go_on_without_a_cache(self) -> None:
        seen = Lookups()
        async with (
            serve(capitals("Calculator")) as service,
            ToolClient(tools(service.url, timeout_s=60.0), cache=_Gone(), saw_lookup=seen.saw) as client,
        ):
            assert (await client.call("Calculator", "a")).output == "A"
            assert outputs(await client.call_many("Calculator", ["a", "b"])) == ["A", "B"]
        assert seen == {"unavailable": 3}


class _Shared(MemoryCache):
    """A cache that several clients use one after another, as they do one in Redis."""

    def __init__(self, cache: MemoryCache) -> None:
        super().__init__()
        self._kept = cache._kept

    async def aclose(self) -> None:
        """Forgets nothing."""


class _Gone:
    async def get(self, keys: Sequence[CallKey]) -> Sequence[str | None]:
        raise CacheUnavailable("gone")

    async def put(self, outputs: Mapping[CallKey, str]) -> None:
        raise CacheUnavailable("gone")

    async def aclose(self) -> None:
        """There is nothing to let go of."""
