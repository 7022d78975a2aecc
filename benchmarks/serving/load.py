"""A load: what is asked of a server, the same for the same seed, and clients that ask for it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from benchmarks.serving.record import Record

REQUEST_SECONDS = 300.0
"""Deadline of one request."""

_PROMPT = "Each of {boxes} trucks carries {books} boxes. How many boxes are there altogether? The answer is"
"""The bundled model goes on with a call, without being pushed to (`api_top_k` 1)."""
_OPERANDS = range(11, 99)


@dataclass(frozen=True, slots=True)
class Load:
    """``requests`` of ``concurrency`` clients, each of which sends its next request as soon as its last has ended. Each
    request calls the tool once and makes half of ``tokens`` tokens to half as many again."""

    requests: int
    concurrency: int = 32
    tokens: int = 128
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One request."""

    number: int
    prompt: str
    tokens: int


def jobs(load: Load) -> list[Job]:
    """The requests of ``load`` in the order in which they are sent; each depends on the seed and its number alone."""
    planned = []
    for number in range(load.requests):
        rng = random.Random(f"{load.seed} {number}")
        prompt = _PROMPT.format(boxes=rng.choice(_OPERANDS), books=rng.choice(_OPERANDS))
        planned.append(Job(number, prompt, rng.randint(-(-load.tokens // 2), load.tokens + load.tokens // 2)))
    return planned


class Way(Protocol):
    """Answers jobs."""

    async def run(self, job: Job, record: Record) -> None:
        """Do ``job`` and note what a client sees of it."""


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of a load: a record for each job, in order.

    Between ``steady`` and ``last_begun`` no client was idle for want of requests; both are times of
    `time.perf_counter`, as ``began`` is."""

    records: Sequence[Record]
    began: float
    steady: float
    last_begun: float


async def drive(way: Way, load: Load) -> Driven:
    """Send all requests of ``load``.

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

    records = [Record(began) for _ in range(load.requests)]
    waiting = iter(jobs(load))
    async with asyncio.TaskGroup() as tasks:
        for _ in range(load.concurrency):
            tasks.create_task(client())
    ends = sorted(record.ended for record in records)
    # All began at once: they are apart when each client has had an answer.
    return Driven(records, began, ends[min(load.concurrency, len(ends)) - 1], max(begun))
