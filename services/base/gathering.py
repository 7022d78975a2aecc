"""Work of several callers, done together: what comes one by one is answered in batches."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")


class Gatherer(Generic[RequestT, ResultT]):
    """Merges concurrent requests into batches.

    One batch is answered at a time. It holds what came while the one before it was being answered; a request that finds
    nothing going on waits ``wait_s`` for company, so that calls made together go together.

    Args:
        answer: answers a batch: a result or an exception for each request, in order.
        max_batch: requests of one batch; by default all that wait.
        wait_s: seconds an idle gatherer waits for more, at most.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[RequestT]], Awaitable[Sequence[ResultT | Exception]]],
        *,
        max_batch: int = sys.maxsize,
        wait_s: float = 0.0,
    ) -> None:
        self._answer = answer
        self._max_batch = max_batch
        self._wait_s = wait_s
        self._waiting: list[_Waiting[RequestT, ResultT]] = []
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to answer."""
        self._serving = asyncio.create_task(self._serve(), name="answer batches")

    async def stop(self) -> None:
        """Stop answering; what waits is cancelled."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.gather(self._serving, return_exceptions=True)
        for waiting in self._waiting:
            waiting.result.cancel()
        self._waiting.clear()

    async def ask(self, request: RequestT) -> ResultT:
        """The answer to one request; raises the exception that `answer` gave for it."""
        result: asyncio.Future[ResultT] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, result))
        self._arrived.set()
        if len(self._waiting) >= self._max_batch:
            self._full.set()
        return await result

    async def ask_all(self, requests: Sequence[RequestT]) -> list[ResultT]:
        """The answers to some requests, in order; raises the first exception among them."""
        return list(await asyncio.gather(*map(self.ask, requests)))

    async def _serve(self) -> None:
        while True:
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                await self._wait_for_company()
            batch = self._next_batch()
            if batch:
                await self._answer_batch(batch)

    async def _wait_for_company(self) -> None:
        self._full.clear()
        if len(self._waiting) < self._max_batch and self._wait_s > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._full.wait(), self._wait_s)

    def _next_batch(self) -> list[_Waiting[RequestT, ResultT]]:
        """The oldest that still want an answer: one whose client has left costs nothing."""
        wanted = [waiting for waiting in self._waiting if not waiting.result.done()]
        self._waiting = wanted[self._max_batch :]
        return wanted[: self._max_batch]

    async def _answer_batch(self, batch: Sequence[_Waiting[RequestT, ResultT]]) -> None:
        try:
            results: Sequence[ResultT | Exception] = await self._answer([waiting.request for waiting in batch])
        except Exception as error:
            results = [error] * len(batch)
        except asyncio.CancelledError:
            for waiting in batch:
                waiting.result.cancel()
            raise
        for waiting, result in zip(batch, results, strict=True):
            if waiting.result.done():
                continue
            if isinstance(result, Exception):
                waiting.result.set_exception(result)
            else:
                waiting.result.set_result(result)


@dataclass(frozen=True, slots=True)
class _Waiting(Generic[RequestT, ResultT]):
    request: RequestT
    result: asyncio.Future[ResultT]
