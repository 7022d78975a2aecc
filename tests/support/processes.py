"""Programs as processes, followed through what they write: no polling, no sleeping."""

import asyncio
import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Mapping

SECONDS = 120
"""Deadline for every single wait."""


class Command:
    """A running program; its standard output and its log, which is standard error, are read apart."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process = process
        self._streams = {"out": process.stdout, "log": process.stderr}
        self.lines: dict[str, list[str]] = {"out": [], "log": []}

    async def line_with(self, pattern: str, stream: str = "log") -> re.Match[str]:
        """The next line that ``pattern`` is found in; fails with all that was written where there is none."""
        async with asyncio.timeout(SECONDS):
            while line := (await self._streams[stream].readline()).decode():
                self.lines[stream].append(line)
                if found := re.search(pattern, line):
                    return found
        raise AssertionError(f"no line with {pattern!r} in:\n{''.join(self.lines[stream])}")

    async def url(self) -> str:
        """The address that a server says it listens on."""
        return (await self.line_with(r"listening on (http://\S+)"))[1]

    async def ended(self, stdin: bytes | None = None) -> int:
        """The exit status, once it has ended and everything it wrote is in ``lines``."""
        async with asyncio.timeout(SECONDS):
            out, log = await self.process.communicate(stdin)
        self.lines["out"] += out.decode().splitlines(keepends=True)
        self.lines["log"] += log.decode().splitlines(keepends=True)
        assert self.process.returncode is not None
        return self.process.returncode

    @property
    def out(self) -> str:
        """Standard output so far."""
        return "".join(self.lines["out"])

    @property
    def log(self) -> str:
        """Standard error so far."""
        return "".join(self.lines["log"])


@contextlib.asynccontextmanager
async def started(module: str, *arguments: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Command]:
    """``python -m module`` with these arguments, without a terminal; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    try:
        yield Command(process)
    finally:
        if process.returncode is None:
            process.kill()
        # Also reads the pipes to their end, so that no transport is left open.
        await process.communicate()
