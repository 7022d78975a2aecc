"""The ``toolformer`` command as a process, and the processes that it starts."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.support.processes import SECONDS, Command, started

FREE_PORTS = {f"TOOLFORMER_{name}_PORT": "0" for name in ("CALCULATOR", "CALENDAR", "WIKI_SEARCH", "GATEWAY")}
"""Settings with which nothing collides with a system that runs on the same machine."""


def toolformer(*arguments: str, env: Mapping[str, str] | None = None) -> AbstractAsyncContextManager[Command]:
    """``toolformer ARGUMENTS``, without a terminal; killed at the end if it still runs."""
    return started("cli", *arguments, env={**FREE_PORTS, **(env or {})})


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
