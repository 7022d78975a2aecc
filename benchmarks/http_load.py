"""Closed-loop HTTP load, as `wrk` makes it: each client sends its next request when its last one is answered.

A general client costs more processor time than some of the services it would measure, on the same two cores. So this
one sends bytes made beforehand over a connection that stays open, and reads of the answer what it must.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO
from urllib.parse import urlsplit

from benchmarks.reports import processor_seconds

SECONDS = 600.0
"""Deadline for a service to become ready, and for a whole measurement."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


def get(path: str) -> bytes:
    """A GET request, ready to be sent."""
    return f"GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n".encode()


def post(path: str, body: object) -> bytes:
    """A POST request with a JSON body, ready to be sent."""
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


@dataclass(frozen=True)
class Service:
    """A service that runs."""

    url: str
    process: int


@dataclass
class Measured:
    """How long each request took, in seconds, how long all of them together, and how long the server computed."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    processor_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Requests answered per second."""
        return len(self.latencies) / self.seconds


async def measure(service: Service, requests: Sequence[bytes], clients: int) -> Measured:
    """Send all ``requests`` to the service once, shared among this many clients.

    Raises:
        RuntimeError: a request was not answered with 200.
        TimeoutError: it took longer than `SECONDS`.
    """
    measured = Measured()
    waiting = iter(requests)
    address = urlsplit(service.url)

    async def client() -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        with contextlib.closing(writer):
            for request in waiting:
                began = time.perf_counter()
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length.group(1)) if length else 0)
                measured.latencies.append(time.perf_counter() - began)
                if not head.startswith(b"HTTP/1.1 200"):
                    asked, said = request.split(b"\r\n")[0].decode(), head.split(b"\r\n")[0].decode()
                    raise RuntimeError(f"{asked} was answered with {said}: {body.decode()[:200]}")

    began, computed = time.perf_counter(), processor_seconds(service.process)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as tasks:
        for _ in range(clients):
            tasks.create_task(client())
    measured.seconds = time.perf_counter() - began
    measured.processor_seconds = processor_seconds(service.process) - computed
    return measured


@contextlib.asynccontextmanager
async def running(service: str, settings: Mapping[str, str] | None = None) -> AsyncIterator[Service]:
    """``python -m services.NAME`` on a free port, ready to answer, with these settings (``TOOLFORMER_NAME_...``).

    Raises:
        RuntimeError: it did not become ready; the text holds its log.
    """
    prefix = f"TOOLFORMER_{service.upper()}_"
    environment = {prefix + name: value for name, value in {"PORT": "0", **(settings or {})}.items()}
    with tempfile.TemporaryFile("w+") as log:  # a pipe would want to be read while the service is measured
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", f"services.{service}", env=os.environ | environment, stderr=log
        )
        try:
            yield Service(await _ready(process, log), process.pid)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def _ready(process: asyncio.subprocess.Process, log: IO[str]) -> str:
    """The address in its log, once the log says that it is ready."""
    async with asyncio.timeout(SECONDS):
        while True:
            log.seek(0)
            said = log.read()
            listening = re.search(r"listening on (http://\S+)", said)
            if listening and "ready after" in said:
                return listening.group(1)
            if "could not start" in said or process.returncode is not None:
                raise RuntimeError(f"the service did not start:\n{said}")
            await asyncio.sleep(0.05)
