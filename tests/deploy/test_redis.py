"""Redis as the compose file and the manifests start it: its password drawn, given or mounted, and asked for."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError

from tests.deploy.code_facts import ROOT
from tests.deploy.manifests import of_kind, render
from tests.support.redis_server import free_port, needs_redis
from toolformer.redis_cache import RedisCache
from toolformer.result_cache import CallKey

pytestmark = needs_redis
KEY = CallKey("Calculator", "1", "1.0.0", "1 + 1", None)


def compose_script() -> str:
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["redis"]
    assert service["entrypoint"] == ["sh", "-euc"]
    [script] = service["command"]
    return str(script).replace("$$", "$")


def manifest_script() -> str:
    [pod] = [one for one in of_kind(render("base"), "Deployment") if one["metadata"]["name"] == "redis"]
    [container] = pod["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["sh", "-euc"]
    [script] = container["args"]
    return str(script)


@contextlib.asynccontextmanager
async def started(script: str, folder: Path, **environment: str) -> AsyncIterator[int]:
    """The port of what ``script`` starts, with ``folder`` in place of the container's own folders."""
    port = free_port()
    script = re.sub(r"/data\b|/run/cache\b|/tmp\b", str(folder), script)
    environment = {"PATH": "/usr/bin:/bin", **environment}
    words = ["sh", "-euc", f"{script.strip()} --bind 127.0.0.1 --port {port}"]
    process = await asyncio.create_subprocess_exec(*words, env=environment, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while b"Ready to accept connections" not in (line := await process.stdout.readline()):
                assert line, "Redis ended before it was ready"
        yield port
    finally:
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            process.kill()
        await process.wait()


async def answers(port: int, password: str | None) -> bool:
    async with Redis(port=port, password=password) as client:
        try:
            return bool(await client.ping())
        except AuthenticationError:
            return False


async def test_compose_draws_a_password_once_that_clients_read(tmp_path: Path) -> None:
    file = tmp_path / "password"
    async with started(compose_script(), tmp_path) as port:
        drawn = file.read_text()
        assert len(drawn) == 64
        assert file.stat().st_mode & 0o777 == 0o444
        assert drawn not in (tmp_path / "redis.conf").read_text()
        assert [await answers(port, one) for one in (None, "", "guess", drawn)] == [False, False, False, True]
        cache = RedisCache(f"redis://127.0.0.1:{port}/0", size=9, age_s=60, password_file=file, deadline_s=5.0)
        await cache.put({KEY: "2"})
        assert await cache.get([KEY]) == ["2"]
        await cache.aclose()
    async with started(compose_script(), tmp_path) as port:
        assert file.read_text() == drawn
        assert await answers(port, drawn)


async def test_compose_takes_a_given_password_with_any_signs(tmp_path: Path) -> None:
    given = """a "b' $c #\\ é"""
    for password in ("first", given):
        async with started(compose_script(), tmp_path, CACHE_PASSWORD=password) as port:
            assert [await answers(port, one) for one in (None, "first", password)] == [False, password == "first", True]
            cache = RedisCache(
                f"redis://127.0.0.1:{port}/0", size=9, age_s=60, password_file=tmp_path / "password", deadline_s=5.0
            )
            await cache.ping()
            await cache.aclose()


async def test_the_manifest_takes_the_secrets_password(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("mounted\n")
    async with started(manifest_script(), tmp_path) as port:
        assert [await answers(port, one) for one in (None, "mounted")] == [False, True]


async def test_without_the_secret_nothing_starts(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended before it was ready"):
        async with started(manifest_script(), tmp_path):
            pass
    (tmp_path / "password").write_text("")
    with pytest.raises(AssertionError, match="ended before it was ready"):
        async with started(manifest_script(), tmp_path):
            pass
