"""Servers of the project in processes of their own, as somebody would start them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import IO

SECONDS = 600.0
"""Deadline for a server to become ready."""

_STOP_SECONDS = 60.0
_READY = re.compile(r"(?m)\bready(: model .*)? after ")


@dataclass(frozen=True)
class Service:
    """A server that runs."""

    url: str
    process: int


@contextlib.asynccontextmanager
async def started(module: str, environment: Mapping[str, str]) -> AsyncIterator[Service]:
    """``python -m module`` with these variables laid over the environment, once its log says that it is ready; it is
    stopped at the end.

    Raises:
        RuntimeError: it did not become ready; the text holds its log.
    """
    with tempfile.TemporaryFile("w+") as log:  # a pipe would want to be read while the server is measured
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, env=os.environ | dict(environment), stderr=log
        )
        try:
            yield Service(await _ready(process, log), process.pid)
        finally:
            if process.returncode is None:
                process.terminate()
            await _ended(process)


async def _ready(process: asyncio.subprocess.Process, log: IO[str]) -> str:
    """The address in its log, once the log says that it is ready."""
    async with asyncio.timeout(SECONDS):
        while True:
            log.seek(0)
            said = log.read()
            listening = re.search(r"listening on (http://\S+)", said)
            if listening and _READY.search(said):
                return listening.group(1)
            if "could not start" in said or "could not be loaded" in said or process.returncode is not None:
                raise RuntimeError(f"the service did not start:\n{said}")
            await asyncio.sleep(0.05)


async def _ended(process: asyncio.subprocess.Process) -> None:
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
