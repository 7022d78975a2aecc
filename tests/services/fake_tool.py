"""An engine under the tests' control, behind the real app factory."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from services.base import Call, NotReady, ServiceInfo, ToolFailure

INFO = ServiceInfo(
    tool="Upper",
    service="upper",
    title="Upper case",
    description="Writes a text in capitals.",
    version="1.2.3",
    input_description="Any text.",
    example_input="abc",
    example_output="ABC",
    max_input_chars=1_000,
    max_batch=4,
    max_body_bytes=100_000,
    max_in_flight=6,
    takes_context=True,
)
FORGETFUL = replace(INFO, takes_context=False)


class UpperEngine:
    """Writes inputs in capitals; some inputs ask it to misbehave.

    ``hold`` waits until `released` is set (and sets `held`), ``day`` answers with the context's date, ``fail`` has no
    answer; ``raise failure``, ``not ready``, ``broken``, ``too few``, ``wrong type`` and ``half a character`` spoil the
    whole batch.
    """

    def __init__(self) -> None:
        self.batches: list[list[Call]] = []
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.start_error: Exception | None = None
        self.stop_error: Exception | None = None
        self.stopped = 0
        self.held = asyncio.Event()
        self.released = asyncio.Event()

    async def start(self) -> None:
        """Waits for `may_start`."""
        await self.may_start.wait()
        if self.start_error is not None:
            raise self.start_error

    async def stop(self) -> None:
        """Counts itself."""
        self.stopped += 1
        if self.stop_error is not None:
            raise self.stop_error

    async def answer(self, calls: Sequence[Call]) -> Sequence[str | ToolFailure]:
        """See the class."""
        self.batches.append(list(calls))
        inputs = [call.input for call in calls]
        if "hold" in inputs:
            self.held.set()
            await self.released.wait()
        if "raise failure" in inputs:
            raise ToolFailure("no_luck", "nothing today")
        if "not ready" in inputs:
            raise NotReady("the index is being rebuilt")
        if "broken" in inputs:
            raise RuntimeError("the secret of the inside")
        if "too few" in inputs:
            return []
        if "wrong type" in inputs:
            return [None for _ in calls]  # type: ignore[misc]
        if "half a character" in inputs:
            return ["\ud800" for _ in calls]
        return [self._answer_one(call) for call in calls]

    def _answer_one(self, call: Call) -> str | ToolFailure:
        if call.input == "fail":
            return ToolFailure("no_answer", "there is none")
        return str(call.date) if call.input == "day" else call.input.upper()
