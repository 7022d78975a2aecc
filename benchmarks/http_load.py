"""Closed-loop HTTP load, as `wrk` makes it: each client sends its next request when its last one is answered.

A general client costs more processor time than some of the services it would measure, on the same two cores. So this
one sends bytes made beforehand over a connection that stays open, and reads of the answer what it must.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from benchmarks.processes import Service
from benchmarks.reports import processor_seconds

SECONDS = 600.0
"""Deadline for a whole measurement."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")


def get(path: str) -> bytes:
    """A GET request, ready to be sent."""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def post(path: str, body: object, headers: Mapping[str, str] | None = None) -> bytes:
    """A POST request with a JSON body, ready to be sent."""
    content = json.dumps(body).encode()
    fields: dict[str, object] = {"Host": "localhost", "Content-Type": "application/json"}
    fields |= {"Content-Length": len(content), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + content


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
