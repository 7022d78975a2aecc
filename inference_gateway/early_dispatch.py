"""Tool calls that begin before the model has asked for them.

Once a call's closing parenthesis is written, only ``->`` is missing, and a pure tool may be called at the risk of an
answer that nobody wants: calling it twice does no more than calling it once. So the call runs beside the step, or the
steps, that it takes to write the arrow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Literal

from toolformer.api_call import ApiCall
from toolformer.tool_client import ToolResult

SawEarly = Callable[[str, Literal["used", "wasted"]], None]
"""Told of each early call's tool, and whether its answer was used."""


class EarlyCall:
    """The early call of one completion: at most one at a time, for there is at most one open call."""

    def __init__(self, saw: SawEarly) -> None:
        self._saw = saw
        self._call: ApiCall | None = None
        self._task: asyncio.Task[ToolResult] | None = None

    def begin(self, call: ApiCall, answering: Coroutine[None, None, ToolResult]) -> None:
        """Start ``call``; an earlier one that was not taken is given up."""
        self.drop()
        self._call, self._task = call, asyncio.create_task(answering, name="early tool call")

    def take(self, call: ApiCall) -> asyncio.Task[ToolResult] | None:
        """The running or finished call, if it is this one."""
        if call != self._call:
            self.drop()
            return None
        task, self._call, self._task = self._task, None, None
        self._saw(call.tool, "used")
        return task

    def drop(self) -> None:
        """Nobody wants the answer any more."""
        if self._call is not None and self._task is not None:
            self._task.cancel()
            self._saw(self._call.tool, "wasted")
        self._call = self._task = None
