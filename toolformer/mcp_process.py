"""Sessions with an MCP server that a command starts, over the process' standard input and output.

One process answers all calls, each as a message of its own: starting one takes longer than a call may. It is started
when it is first asked, and again when it has died or says nothing any more. It runs with the rights of this process and
is its operator's choice; the size of an answer is looked at, the memory that it takes is not bounded.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Final, Self

import anyio
import httpx
from mcp.client import Client
from mcp.client._transport import TransportStreams
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.message import SessionMessage

from toolformer.outside import McpServer, SecretMissing
from toolformer.tool_wire import ErrorCode, Failed
from toolformer.tools import Tool

logger = logging.getLogger(__name__)

START_S: Final = 60.0
"""Seconds that a process may take until it answers at all: some are fetched first."""

SILENT_S: Final = 30.0
"""Seconds beyond the time of a call in which a process that was asked says nothing; then it counts as stuck."""


class ProcessSessions:
    """The session with the process of the tool's ``command``; an async context manager, which ends the process."""

    def __init__(self, tool: Tool, server: McpServer) -> None:
        self._tool = tool
        self._server = server
        self._process: _Process | None = None
        self._lives: dict[_Process, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for process, task in self._lives.items():
            if process.opened.done():
                process.ended.set()  # and no more: a cancelled task would leave a process behind
            else:
                task.cancel()
        await asyncio.gather(*self._lives.values(), return_exceptions=True)

    @asynccontextmanager
    async def open(self, max_bytes: int, headers: Mapping[str, str]) -> AsyncIterator[Client]:
        """See `Sessions`; a process takes no headers."""
        process = self._living()
        # A caller whose time is up does not stop the process from starting for the others.
        client = await asyncio.shield(process.opened)
        process.asked()
        yield client

    def _living(self) -> _Process:
        """The process, a new one if there is none that answers."""
        if self._process is not None and self._process.silent_s > SILENT_S + self._tool.timeout_s:
            logger.warning("%s: its server says nothing any more and is ended", self._tool.name)
            self._process.ended.set()
        if self._process is None or self._process.ended.is_set():
            self._process = process = _Process()
            # An ended one may take a while to go, in a task of its own.
            self._lives[process] = asyncio.create_task(self._run(process), name=f"server of {self._tool.name}")
            self._lives[process].add_done_callback(lambda _: self._lives.pop(process))
        return self._process

    async def _run(self, process: _Process) -> None:
        """Start ``process`` and keep its session until it has ended."""
        try:
            started = StdioServerParameters(
                command=self._server.command[0],
                args=self._server.command[1:],
                env=self._server.read_environment(),
            )
            async with (
                asyncio.timeout(START_S) as starting,
                Client(process.connected(started), cache=None) as client,
            ):
                starting.reschedule(None)
                process.opened.set_result(client)
                logger.info("%s: its server has started", self._tool.name)
                await process.ended.wait()
            logger.warning("%s: its server has ended; the next call starts it again", self._tool.name)
        except Exception as error:
            process.failed(self._why(error))
        finally:
            process.ended.set()
            process.failed(httpx.ConnectError("its server is being stopped"))

    def _why(self, error: Exception) -> Exception:
        """The error for those who wait for a process that did not start."""
        if isinstance(error, SecretMissing):
            return Failed(ErrorCode.UNREACHABLE, f"{self._tool.name} cannot be asked: {error}")
        if isinstance(error, TimeoutError):
            return httpx.ConnectError(f"its server did not answer within {START_S:g} s")
        if isinstance(error, OSError):
            return httpx.ConnectError(f"its server cannot be started: {error.strerror}")
        logger.info("%s: its server did not start: %r", self._tool.name, error)
        return httpx.ConnectError("its server ended before it answered")


class _Process:
    """One life of a server."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        """The session, once the server has answered; or why there is none."""
        self.ended = asyncio.Event()
        """Set when nothing more comes from the process, or nothing more is wanted from it."""
        self._silent_since: float | None = None

    @property
    def silent_s(self) -> float:
        """Seconds since it was asked something and said nothing."""
        return 0.0 if self._silent_since is None else time.monotonic() - self._silent_since

    def asked(self) -> None:
        """Something is sent to it now."""
        self._silent_since = self._silent_since or time.monotonic()

    def failed(self, error: Exception) -> None:
        """It did not start."""
        if not self.opened.done():
            self.opened.set_exception(error)
            self.opened.exception()  # nobody need be waiting any more

    @asynccontextmanager
    async def connected(self, server: StdioServerParameters) -> AsyncGenerator[TransportStreams, None]:
        """The SDK's connection to a new process, watched for signs of life."""
        async with stdio_client(server, sys.stderr) as (incoming, outgoing), anyio.create_task_group() as passing:
            sending, receiving = anyio.create_memory_object_stream[SessionMessage | Exception](0)

            async def pass_on() -> None:
                async with sending:
                    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session is being closed
                        async for message in incoming:
                            self._silent_since = None
                            await sending.send(message)
                    self.ended.set()  # before those who wait for an answer learn of it, and ask again

            passing.start_soon(pass_on)
            yield receiving, outgoing
            passing.cancel_scope.cancel()
