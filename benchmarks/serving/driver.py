"""Sends the requests of a load in their order, each client its next one as soon as its last has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.serving.load import Job, Load
from benchmarks.serving.record import Record
from benchmarks.serving.ways import Way

REQUEST_SECONDS = 300.0
"""Deadline of one request."""


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of a load: a record for each job, in order.

    Between ``steady`` and ``last_begun`` no client was idle for want of requests; both are times of
    `time.perf_counter`, as ``began`` is."""

    records: Sequence[Record]
    began: float
    steady: float
    last_begun: float


async def drive(way: Way, load: Load, jobs: Sequence[Job]) -> Driven:
    """Do all ``jobs`` of ``load``.

    Raises:
        ExceptionGroup: if a request failed or took longer than `REQUEST_SECONDS`.
    """
    began = time.perf_counter()
    begun: list[float] = []

    async def client() -> None:
        for job in waiting:
            record = records[job.number]
            record.arrived = time.perf_counter()
            begun.append(record.arrived)
            async with asyncio.timeout(REQUEST_SECONDS):
                await way.run(job, record)

    records = [Record(began) for _ in jobs]
    waiting = iter(jobs)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(load.concurrency):
            tasks.create_task(client())
    ends = sorted(record.ended for record in records)
    # All began at once: they are apart when each client has had an answer.
    return Driven(records, began, ends[min(load.concurrency, len(ends)) - 1], max(begun))
