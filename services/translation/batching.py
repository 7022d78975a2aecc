"""Work of several callers, done together: a batch waits a little for company, and never for long."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, eq=False)
class _Waiting(Generic[ItemT, ResultT]):
    item: ItemT
    done: asyncio.Future[ResultT]
    since: float


class Batcher(Generic[ItemT, ResultT]):
    """Collects items and hands them to `work`, one batch at a time, in the order in which they came.

    A batch starts when it is full, or when its first item has waited `max_wait_s`; while one runs, the next
    collects. An item whose caller has gone is left out.

    Args:
        work: one result for each item; runs in a thread of its own.
        max_batch: items in a batch.
        max_wait_s: seconds that an item waits for company when nothing else is being done.
    """

    def __init__(self, work: Callable[[list[ItemT]], Sequence[ResultT]], *, max_batch: int, max_wait_s: float) -> None:
        self._work = work
        self._max_batch = max_batch
        self._max_wait_s = max_wait_s
        self._waiting: deque[_Waiting[ItemT, ResultT]] = deque()
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="batch")
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work."""
        self._loop = asyncio.create_task(self._run(), name="batcher")

    async def stop(self) -> None:
        """Finish the batch at work; the items that wait are cancelled."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        while self._waiting:
            self._waiting.popleft().done.cancel()
        await asyncio.to_thread(self._thread.shutdown)

    async def submit(self, items: Sequence[ItemT]) -> list[ResultT]:
        """The results for `items`, in order.

        Raises:
            Exception: what `work` raised for a batch that held one of them.
            asyncio.CancelledError: the batcher was stopped.
        """
        loop = asyncio.get_running_loop()
        mine = [_Waiting[ItemT, ResultT](item, loop.create_future(), loop.time()) for item in items]
        self._waiting.extend(mine)
        self._announce()
        try:
            return list(await asyncio.gather(*(waiting.done for waiting in mine)))
        finally:
            for waiting in mine:
                waiting.done.cancel()

    def _announce(self) -> None:
        if self._waiting:
            self._arrived.set()
        if len(self._waiting) >= self._max_batch:
            self._full.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            try:
                async with asyncio.timeout_at(self._waiting[0].since + self._max_wait_s):
                    await self._full.wait()
            except TimeoutError:
                pass  # it goes with the company it has
            batch = self._take()
            if not batch:
                continue
            try:
                results = await loop.run_in_executor(self._thread, self._work, [waiting.item for waiting in batch])
            except asyncio.CancelledError:
                for waiting in batch:
                    waiting.done.cancel()
                raise
            except Exception as error:
                for waiting in batch:
                    if not waiting.done.done():
                        waiting.done.set_exception(error)
                continue
            for waiting, result in zip(batch, results, strict=True):
                if not waiting.done.done():
                    waiting.done.set_result(result)

    def _take(self) -> list[_Waiting[ItemT, ResultT]]:
        batch: list[_Waiting[ItemT, ResultT]] = []
        while self._waiting and len(batch) < self._max_batch:
            waiting = self._waiting.popleft()
            if not waiting.done.done():
                batch.append(waiting)
        self._arrived.clear()
        self._full.clear()
        self._announce()
        return batch
