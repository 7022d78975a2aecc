"""Two kinds of engine: one that answers each call at once, and one that answers in batches in a thread of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, TypeVar

from services.base.engine import Call, NotReady, ToolFailure
from services.base.gathering import Gatherer

RequestT = TypeVar("RequestT")
ResultT = TypeVar("ResultT")
WorkT = TypeVar("WorkT")


class AtOnce:
    """An engine with nothing to load, for work too short for a thread to pay; the event loop turns between the calls of
    a batch.

    Args:
        answer_one: the answer to a call, in milliseconds at most.
        data_version: see `services.base.engine.HasData`.
    """

    def __init__(self, answer_one: Callable[[Call], str | ToolFailure], data_version: str = "") -> None:
        self._answer_one = answer_one
        self.data_version = data_version

    async def start(self) -> None:
        """There is nothing to load."""

    async def stop(self) -> None:
        """There is nothing to release."""

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """The answer to each call."""
        answers = []
        for call in calls:
            answers.append(self._answer_one(call))
            await asyncio.sleep(0)
        return answers


class InBatches(Generic[RequestT, ResultT]):
    """An engine with one thread, which loads what answering needs and answers what concurrent calls ask, in batches.

    A subclass says how to `load`, how to `close`, and by `answer_one` what to ask for a call.

    Args:
        max_batch, wait_s: see `Gatherer`.
    """

    data_version = ""
    """See `services.base.engine.HasData`; `load` sets it."""
    not_ready = "the model is not loaded"
    """What `NotReady` says before the start and after the end."""

    def __init__(self, *, max_batch: int = sys.maxsize, wait_s: float = 0.0) -> None:
        self._max_batch, self._wait_s = max_batch, wait_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._gatherer: Gatherer[RequestT, ResultT] | None = None

    def load(self) -> Callable[[Sequence[RequestT]], Sequence[ResultT | Exception]]:
        """Load, in the thread; what is returned answers a batch there: a result or an exception for each request.

        Raises:
            CannotStart: what it needs is missing or broken.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Release, in the thread, what `load` took; called also where that failed."""

    async def answer_one(self, call: Call) -> str:
        """The answer to a call.

        Raises:
            ToolFailure: there is none.
            NotReady: see `ask_all`.
        """
        raise NotImplementedError

    async def start(self) -> None:
        """Loads, and begins to answer.

        Raises:
            CannotStart: see `load`.
        """
        answer = await self.in_thread(self.load)
        self._gatherer = Gatherer(
            lambda requests: self.in_thread(partial(answer, requests)), max_batch=self._max_batch, wait_s=self._wait_s
        )
        self._gatherer.start()

    async def stop(self) -> None:
        """Waits for the batch that runs, and releases everything; what still waits is cancelled."""
        gatherer, self._gatherer = self._gatherer, None
        if gatherer is not None:
            await gatherer.stop()
        await self.in_thread(self.close)
        await asyncio.to_thread(self._thread.shutdown)

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """What `answer_one` says to each call, at once."""

        async def outcome(call: Call) -> str | ToolFailure:
            try:
                return await self.answer_one(call)
            except ToolFailure as failure:
                return failure

        return list(await asyncio.gather(*map(outcome, calls)))

    async def ask_all(self, requests: Sequence[RequestT]) -> list[ResultT]:
        """The results of requests, in order; raises the first exception among them.

        Raises:
            NotReady: the engine has not been started, or was stopped.
        """
        if self._gatherer is None:
            raise NotReady(self.not_ready)
        return await self._gatherer.ask_all(requests)

    async def in_thread(self, work: Callable[[], WorkT]) -> WorkT:
        """The result of work in the engine's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)
