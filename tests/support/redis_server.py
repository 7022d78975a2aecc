"""A real Redis for a test, on a port of its own, that writes nothing to disk."""

import asyncio
import contextlib
import shutil
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import pytest

BINARY: Final = shutil.which("redis-server")

needs_redis = pytest.mark.skipif(BINARY is None, reason="there is no redis-server here (apt-get install redis-server)")
"""For tests that start one."""


@dataclass
class RedisServer:
    """A running server: its process, its port and its password."""

    process: asyncio.subprocess.Process
    port: int
    password: str

    @property
    def url(self) -> str:
        """Where it answers, and to whom."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    async def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        await self.process.wait()


def free_port() -> int:
    """A port that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def redis_server(port: int = 0, password: str = "s3cret") -> AsyncIterator[RedisServer]:
    """Redis on ``port`` (0: a free one), until left."""
    assert BINARY is not None
    port = port or free_port()
    options = ["--bind", "127.0.0.1", "--port", str(port), "--requirepass", password, "--save", ""]
    process = await asyncio.create_subprocess_exec(BINARY, *options, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while b"Ready to accept connections" not in (line := await process.stdout.readline()):
                assert line, "Redis ended before it was ready"
        yield RedisServer(process, port, password)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
