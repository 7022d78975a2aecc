"""The ``toolformer`` command as a process, followed through what it writes: no polling, no sleeping."""

import asyncio
import contextlib
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

SECONDS = 120
"""Deadline for every single wait."""

FREE_PORTS = {f"TOOLFORMER_{name}_PORT": "0" for name in ("CALCULATOR", "CALENDAR", "WIKI_SEARCH", "GATEWAY")}
"""Settings with which nothing collides with a system that runs on the same machine."""


class Command:
    """A running command; its standard output and its log are read apart."""

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
async def toolformer(*arguments: str, env: Mapping[str, str] | None = None) -> AsyncIterator[Command]:
    """``toolformer ARGUMENTS``, without a terminal; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cli",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **FREE_PORTS, **(env or {})},
    )
    try:
        yield Command(process)
    finally:
        if process.returncode is None:
            process.kill()
        # Also reads the pipes to their end, so that no transport is left open.
        await process.communicate()


async def run(*arguments: str, env: Mapping[str, str] | None = None, stdin: bytes = b"") -> tuple[int, str, str]:
    """Run the command to its end: exit status, standard output, standard error."""
    async with toolformer(*arguments, env=env) as command:
        status = await command.ended(stdin)
    return status, command.out, command.log


async def gone(pid: int) -> None:
    """Return once the process has ended, at once if it has before; it need not be a child of ours."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(handle, over.set)  # A pidfd becomes readable when its process ends.
    try:
        async with asyncio.timeout(SECONDS):
            await over.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)


def is_listening(port: int) -> bool:
    """Whether something accepts connections on the port."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process."""
    os.kill(pid, number)


def descendants(pid: int) -> list[int]:
    """The processes that a process started, and theirs."""
    children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*children, *(one for child in children for one in descendants(child))]
