"""Sends the requests of a load in their order, at their times, and no more at once than it allows."""

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
    records: list[Record] = []
    begun: list[float] = []
    room = asyncio.Semaphore(load.concurrency)

    async def one(job: Job) -> None:
        record = records[job.number]
        begun.append(time.perf_counter())
        async with asyncio.timeout(REQUEST_SECONDS):
            await way.run(job, record)

    async def arriving(job: Job) -> None:
        await asyncio.sleep(job.arrives - (time.perf_counter() - began))
        records[job.number].arrived = time.perf_counter()
        async with room:
            await one(job)

    async def client() -> None:
        for job in waiting:
            records[job.number].arrived = time.perf_counter()
            await one(job)

    records += [Record(began) for _ in jobs]
    waiting = iter(jobs)
    async with asyncio.TaskGroup() as tasks:
        if load.rate is None:
            for _ in range(load.concurrency):
                tasks.create_task(client())
        else:
            for job in jobs:
                tasks.create_task(arriving(job))
    ends = sorted(record.ended for record in records)
    # With clients that wait for their answers, all began at once: they are apart when each has had one.
    warm = ends[min(load.concurrency, len(ends)) - 1] if load.rate is None else began
    return Driven(records, began, warm, max(begun))
