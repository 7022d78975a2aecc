"""One run of a component: a process in a session of its own, tethered to ours, whose output is read line by line."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Final

from cli.components import Component

LAST_LINES: Final = 15
"""Lines kept for an error that says how a component ended."""
MAX_LINE: Final = 16_384
"""Characters after which a line without an end is cut, so that no output can fill our memory."""
_LAST_OUTPUT_SECONDS: Final = 2.0


class Child:
    """A started process; make one with `start`."""

    def __init__(self, process: asyncio.subprocess.Process, on_line: Callable[[str], None]) -> None:
        self._process = process
        self._on_line = on_line
        self._last: deque[str] = deque(maxlen=LAST_LINES)

    @classmethod
    async def start(cls, component: Component, on_line: Callable[[str], None]) -> Child:
        """Start ``component``; ``on_line`` is given each line it writes to standard output or error.

        Raises:
            OSError: the machine cannot start a process.
        """
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "cli.tethered",
            component.module,
            stdin=asyncio.subprocess.PIPE,  # The tether: the kernel closes it when we end, however we end.
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, **component.environment, "PYTHONUNBUFFERED": "1"},
            start_new_session=True,  # The terminal's Ctrl-C is for us to pass on, in order.
        )
        return cls(process, on_line)

    @property
    def pid(self) -> int:
        """The process id, also that of its session and group."""
        return self._process.pid

    @property
    def last_lines(self) -> str:
        """The last lines it wrote."""
        return "\n".join(self._last)

    async def ended(self) -> str:
        """Pass its lines on until it ends; then how it ended, such as ``exited with status 1``. To be awaited once."""
        reading = asyncio.create_task(self._read())
        try:
            status = await self._process.wait()
            self.kill()  # What it may have started itself must not outlive it.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(reading), _LAST_OUTPUT_SECONDS)
        finally:
            reading.cancel()
        return f"was killed by {_signal_name(-status)}" if status < 0 else f"exited with status {status}"

    def terminate(self) -> None:
        """Ask it to end; what it may have started itself is for it to end."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it and whatever it started; nothing happens if all that is gone."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def _read(self) -> None:
        if self._process.stdout is None:
            raise RuntimeError("the process was started without a pipe")
        async for line in _lines(self._process.stdout):
            self._last.append(line)
            self._on_line(line)


async def _lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    held = ""
    while chunk := await stream.read(65_536):
        *whole, held = (held + decoder.decode(chunk)).split("\n")
        if len(held) > MAX_LINE:
            whole.append(held)
            held = ""
        for line in whole:
            line = line.removesuffix("\r")
            for start in range(0, len(line) or 1, MAX_LINE):
                yield line[start : start + MAX_LINE]
    if held:
        yield held


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
