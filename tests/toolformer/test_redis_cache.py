"""Results kept in a real Redis: shared, bounded, not trusted, and never in a call's way."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.support.redis_server import RedisServer, free_port, needs_redis, redis_server
from tests.toolformer.test_kept_calls import DAY, Lookups
from tests.toolformer.test_tool_client import tools
from tests.toolformer.tool_service import capitals, serve
from toolformer.redis_cache import RedisCache
from toolformer.result_cache import MAX_CHARS, CacheConfigError, CacheUnavailable, CallKey
from toolformer.tool_client import ToolClient

pytestmark = needs_redis

KEY = CallKey("Calculator", "1", "1.0.0", "1 + 1", None)
PATIENT_S = 5.0
"""A deadline that a busy machine keeps; where it is not what is tested."""


def cache_of(server: RedisServer, *, size: int = 100, age_s: float = 60.0, cool_down_s: float = 0.05) -> RedisCache:
    return RedisCache(server.url, size=size, age_s=age_s, deadline_s=PATIENT_S, cool_down_s=cool_down_s)


@asynccontextmanager
async def cache_and_redis(**bounds: Any) -> AsyncIterator[tuple[RedisCache, Redis]]:
    """A cache, and the Redis behind it for looking inside."""
    async with redis_server() as server:
        cache, inside = cache_of(server, **bounds), Redis.from_url(server.url)
        yield cache, inside
        await cache.aclose()
        await inside.aclose()


async def test_what_is_kept_comes_back_and_nothing_else() -> None:
    output = 'é 日本 🙂 \x00 "]" ->'
    others = [KEY._replace(**{field: "other"}) for field in ("tool", "version", "service_version", "input", "date")]
    async with cache_and_redis() as (cache, _):
        await cache.put({KEY: output, others[0]: ""})
        assert await cache.get([KEY, *others]) == [output, "", None, None, None, None]


async def test_the_longest_entry_comes_back() -> None:
    key = KEY._replace(input="🙂" * (MAX_CHARS // 2))
    async with cache_and_redis() as (cache, _):
        await cache.put({key: "\x00" * (MAX_CHARS // 2)})
        assert await cache.get([key]) == ["\x00" * (MAX_CHARS // 2)]


async def test_entries_have_an_age() -> None:
    async with cache_and_redis(age_s=60.0) as (cache, inside):
        await cache.put({KEY: "2"})
        names = await inside.keys()
        assert len(names) == 2
        ages = [await inside.pttl(name) for name in names]
        assert all(0 < age <= 60_000 for age in ages)


async def test_the_oldest_go_when_there_are_too_many() -> None:
    keys = [KEY._replace(input=str(number)) for number in range(10)]
    async with cache_and_redis(size=4) as (cache, inside):
        for key in keys[:6]:
            await cache.put({key: key.input})
        assert await cache.get(keys[:6]) == [None, None, "2", "3", "4", "5"]
        await cache.put({key: key.input for key in keys})
        assert len([one for one in await cache.get(keys) if one is not None]) == 4
        assert await inside.dbsize() == 5  # and the set of their names


async def _entry_name(cache: RedisCache, inside: Redis) -> bytes:
    await cache.put({KEY: "2"})
    [name] = [name for name in await inside.keys() if await inside.type(name) == b"string"]
    assert isinstance(name, bytes)
    return name


@pytest.mark.parametrize(
    "value",
    [
        "",
        "2",
        "not JSON",
        b"\xff\xfe",
        "[" * 10_000,
        '{"output": "3"}',
        json.dumps({"call": KEY, "output": 3}),
        json.dumps({"call": KEY, "output": None}),
        json.dumps({"call": KEY, "output": "3", "more": 1}),
        json.dumps({"call": KEY._replace(input="2 + 2"), "output": "4"}),
        json.dumps({"call": KEY[:4], "output": "3"}),
        json.dumps({"call": KEY, "output": "3" * MAX_CHARS}),
        json.dumps({"call": KEY, "output": "3" * 1_000_000}),
        '{"call": ["Calculator", "1", "1.0.0", "1 + 1", null], "output": "\\ud83d"}',
    ],
)
async def test_what_is_no_entry_of_this_call_counts_as_absent(value: str | bytes) -> None:
    async with cache_and_redis() as (cache, inside):
        name = await _entry_name(cache, inside)
        assert await cache.get([KEY]) == ["2"]
        await inside.set(name, value)
        other = KEY._replace(input="7")
        await cache.put({other: "7"})
        assert await cache.get([KEY, other]) == [None, "7"]


async def test_a_name_that_holds_another_kind_of_thing_counts_as_absent() -> None:
    async with cache_and_redis() as (cache, inside):
        name = await _entry_name(cache, inside)
        await inside.delete(name)
        await inside.lpush(name, "a")
        assert await cache.get([KEY]) == [None]


async def test_several_clients_share_what_is_kept() -> None:
    async with redis_server() as server, serve(capitals("Calendar", "1.0.0+a")) as service:
        registry = tools(service.url, timeout_s=60.0)
        async with (
            ToolClient(registry, cache=cache_of(server)) as one,
            ToolClient(registry, cache=cache_of(server)) as other,
        ):
            first = await one.call("Calendar", "", date=DAY)
            again = await other.call_many("Calendar", ["", ""], dates=[DAY, None])
    assert (first.cached, [result.cached for result in again]) == (False, [True, False])
    assert [result.output for result in again] == ["", ""]
    assert len(service.calls) == 2


async def test_many_clients_at_once_keep_to_the_bound() -> None:
    async with redis_server() as server, serve(capitals("Calculator")) as service:

        async def work(number: int) -> None:
            async with ToolClient(tools(service.url, timeout_s=60.0), cache=cache_of(server, size=8)) as client:
                texts = [f"a{n}" for n in range(number, number + 20)]
                results = await asyncio.gather(*(client.call("Calculator", text) for text in texts))
                assert [result.output for result in results] == [text.upper() for text in texts]

        await asyncio.gather(*map(work, range(6)))
        inside = Redis.from_url(server.url)
        assert await inside.dbsize() <= 9
        await inside.aclose()


async def test_redis_killed_in_mid_run_and_started_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    seen = Lookups()
    async with (
        serve(capitals("Calculator")) as service,
        redis_server() as server,
        ToolClient(tools(service.url, timeout_s=60.0), cache=cache_of(server), saw_lookup=seen.saw) as client,
    ):
        assert not (await client.call("Calculator", "a")).cached
        assert (await client.call("Calculator", "a")).cached

        working = asyncio.gather(*(client.call("Calculator", f"a{number}") for number in range(50)))
        await server.kill()
        assert [result.output for result in await working] == [f"A{number}" for number in range(50)]
        for text in "abcdef":
            result = await client.call("Calculator", text)
            assert (result.output, result.cached) == (text.upper(), False)
        assert seen["unavailable"] >= 6
        warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
        assert len(warnings) == 1
        assert server.password not in caplog.text

        async with redis_server(server.port), asyncio.timeout(60):
            while not (await client.call("Calculator", "z")).cached:  # noqa: ASYNC110 - it is tried by being used
                await asyncio.sleep(0.01)
        assert "connecting works again" in caplog.text


async def _fill(redis: Redis, *, full: bool) -> None:
    await redis.config_set("maxmemory", int(full))


async def _make_replica(redis: Redis, *, full: bool) -> None:
    await redis.replicaof("127.0.0.1" if full else "NO", free_port() if full else "ONE")


@pytest.mark.parametrize(("refuse", "reason"), [(_fill, "maxmemory"), (_make_replica, "read only")])
async def test_a_redis_that_refuses_writes_still_serves_reads(
    caplog: pytest.LogCaptureFixture, refuse: Callable[..., Awaitable[None]], reason: str
) -> None:
    caplog.set_level(logging.INFO)
    other = KEY._replace(input="2 + 2")
    async with cache_and_redis(cool_down_s=600.0) as (cache, inside):
        await cache.put({KEY: "2"})
        await refuse(inside, full=True)
        for _ in range(8):
            with pytest.raises(CacheUnavailable, match=reason):
                await cache.put({other: "4"})
            assert await cache.get([KEY, other]) == ["2", None]
        assert [record.levelno for record in caplog.records].count(logging.WARNING) == 1
        await refuse(inside, full=False)
        await cache.put({other: "4"})
        assert await cache.get([KEY, other]) == ["2", "4"]
        assert "writing works again" in caplog.text


async def test_a_foreign_value_under_the_name_of_the_set_ends_only_one_write() -> None:
    async with cache_and_redis(size=2) as (cache, inside):
        await inside.set("toolformer:results", "x")
        with pytest.raises(CacheUnavailable, match="WRONGTYPE"):
            await cache.put({KEY: "2"})
        for number in range(5):
            await cache.put({KEY._replace(input=str(number)): "2"})
        assert await inside.zcard("toolformer:results") == 2


async def test_a_redis_that_never_answers_is_left_alone_after_a_short_wait() -> None:
    connections = []

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(mute, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    seen = Lookups()
    async with silent, serve(capitals("Calculator")) as service:
        cache = RedisCache(f"redis://127.0.0.1:{port}", size=9, age_s=60, deadline_s=0.02, cool_down_s=600)
        async with ToolClient(tools(service.url, timeout_s=60.0), cache=cache, saw_lookup=seen.saw) as client:
            for text in "abcdefgh":
                assert (await client.call("Calculator", text)).output == text.upper()
        assert seen == {"unavailable": 8}
        assert 1 <= len(connections) <= 3


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{free}/0", "redis://:wrong@127.0.0.1:{redis}/0"])
async def test_trouble_is_said_without_the_password(url: str) -> None:
    async with redis_server() as server:
        cache = RedisCache(url.format(free=free_port(), redis=server.port), size=1, age_s=60, deadline_s=PATIENT_S)
        with pytest.raises(CacheUnavailable, match=r"^redis://127\.0\.0\.1:\d+/0: ") as caught:
            await cache.ping()
        with pytest.raises(CacheUnavailable):
            await cache.get([KEY])
        await cache.aclose()
    assert "wrong" not in str(caught.value).replace("WRONGPASS", "")


async def test_a_caller_who_leaves_spoils_no_connection() -> None:
    async with cache_and_redis() as (cache, _):
        keys = [KEY._replace(input=str(number)) for number in range(40)]
        await cache.put({key: key.input for key in keys})
        for _ in range(10):
            readers = [asyncio.create_task(cache.get([key])) for key in keys]
            await asyncio.sleep(0)
            for reader in readers[::2]:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            assert [reader.result() for reader in readers[1::2]] == [[key.input] for key in keys[1::2]]
        assert await cache.get(keys) == [key.input for key in keys]


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://localhost", "redis://localhost:port", "redis://:s3cret@localhost/0?no_such=1"]
)
def test_a_url_that_cannot_hold_is_refused(url: str) -> None:
    with pytest.raises(CacheConfigError, match=r"TOOLFORMER_CACHE_URL: .*write redis://") as caught:
        RedisCache(url, size=1, age_s=1)
    assert "s3cret" not in str(caught.value)


async def test_the_password_comes_from_a_file_and_may_change(tmp_path: Path) -> None:
    file = tmp_path / "password"
    async with redis_server(password="first one") as server:
        url = f"redis://127.0.0.1:{server.port}/0"
        cache = RedisCache(url, size=9, age_s=60, password_file=file, deadline_s=PATIENT_S, cool_down_s=0.05)
        for written, problem in ((None, "cannot be read"), ("\n", "is empty"), ("wrong", "invalid username-password")):
            if written is not None:
                file.write_text(written)
            with pytest.raises(CacheUnavailable, match=problem) as caught:
                await cache.ping()
            assert "wrong" not in str(caught.value)
            await asyncio.sleep(0.1)
        file.write_text("first one\n")
        await cache.put({KEY: "2"})
        async with Redis.from_url(server.url.replace("first one", "first%20one")) as inside:
            await inside.config_set("requirepass", "the-next")
            await inside.client_kill_filter(skipme=True)
        file.write_text("the-next")
        with contextlib.suppress(CacheUnavailable):  # a connection of before may be found closed
            await cache.get([KEY])
        await asyncio.sleep(0.1)
        assert await cache.get([KEY]) == ["2"]
        await cache.aclose()


def test_a_password_in_url_and_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CacheConfigError, match=r"TOOLFORMER_CACHE_PASSWORD_FILE: leave one out") as caught:
        RedisCache("redis://:s3cret@localhost/0", size=1, age_s=1, password_file=tmp_path / "password")
    assert "s3cret" not in str(caught.value)
