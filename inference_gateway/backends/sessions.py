"""What the backends' sessions share: a queue of actions with one reader, and a task that makes the tokens."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from typing import Final, Literal

from inference_gateway.actions import Action
from inference_gateway.core import Finished, FinishReason, SamplingParams
from inference_gateway.decoding import DecodingMachine
from inference_gateway.engine.stats import Observer, StepTimes

_SEEDS: Final = 2**63


class QueuedSession:
    """Actions for one reader, which ends after the terminal one."""

    def __init__(self) -> None:
        self._actions: asyncio.Queue[Action] = asyncio.Queue()

    async def __aiter__(self) -> AsyncIterator[Action]:
        while True:
            action = await self._actions.get()
            yield action
            if isinstance(action, Finished):
                return

    def _pass_on(self, actions: list[Action]) -> None:
        for action in actions:
            self._actions.put_nowait(action)


class TaskSession(QueuedSession, ABC):
    """A completion of which a task of its own gives ``machine`` the tokens, once that was begun; ``observe`` takes
    their times."""

    def __init__(self, machine: DecodingMachine, observe: Observer) -> None:
        super().__init__()
        self._machine = machine
        self._observe = observe
        self._since = time.monotonic()
        self._waits_for: Literal["first", "between", "resumed"] = "first"
        self._task: asyncio.Task[None] | None = None
        self.ended = False

    @property
    def task(self) -> asyncio.Task[None] | None:
        """What reads tokens now, or closes what it read them from."""
        return self._task

    def finish(self, reason: FinishReason, message: str = "") -> None:
        if not self.ended:
            self._pass_on(self._machine.finish(reason, message))
            self._end()

    def close(self) -> None:
        self._end()

    @abstractmethod
    def _has_ended(self) -> None:
        """Called once, when it has ended or was closed."""

    def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        self._has_ended()

    def _note_answer(self) -> None:
        """The tool has answered: the next token's time counts from here."""
        self._since, self._waits_for = time.monotonic(), "resumed"

    def _note_token(self) -> None:
        """A token came: report how long it was waited for."""
        now = time.monotonic()
        times = StepTimes()
        getattr(times, self._waits_for).append(now - self._since)
        self._observe(times)
        self._since, self._waits_for = now, "between"


def seed_behind(sampling: SamplingParams, made: int) -> int | None:
    """The seed for what goes on behind ``made`` tokens: the same seed again would draw the same numbers again."""
    return None if sampling.seed is None else (sampling.seed + made) % _SEEDS
