"""A server in a process of its own, followed through its log: no polling and no sleeping."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping

SECONDS = 120
"""Deadline for every single wait."""


class ServerProcess:
    """A running server and the lines it has logged so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []

    async def line_with(self, text: str) -> str:
        """The next log line that holds ``text``; fails with the whole log where there is none."""
        assert self.process.stderr is not None
        async with asyncio.timeout(SECONDS):
            while line := (await self.process.stderr.readline()).decode():
                self.lines.append(line)
                if text in line:
                    return line
        raise AssertionError(f"no line with {text!r} in:\n{''.join(self.lines)}")

    async def url(self) -> str:
        """The address it says it listens on."""
        found = re.search(r"http://\S+", await self.line_with("listening on"))
        assert found
        return found.group()

    async def ended(self) -> int:
        """The exit status, once it has ended and its log is read to the end."""
        assert self.process.stderr is not None
        async with asyncio.timeout(SECONDS):
            rest = await self.process.stderr.read()
            self.lines += rest.decode().splitlines(keepends=True)
            return await self.process.wait()


@contextlib.asynccontextmanager
async def started(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> AsyncIterator[ServerProcess]:
    """``python -m module`` with these arguments; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    try:
        yield ServerProcess(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        if process.stdin is not None:
            process.stdin.close()
