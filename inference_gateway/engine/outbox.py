"""What the engine's thread passes to the event loop, and when it does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from inference_gateway.actions import Action
from inference_gateway.core import TextDelta
from inference_gateway.engine.sequence import Listener
from inference_gateway.engine.stats import Observer, StepTimes

_PAUSE: Final = 0.001
_PAUSE_A_LISTENER: Final = 0.0012
_LONGEST_PAUSE: Final = 1 / 25
"""Seconds that text may wait for more: at all, for each listener that it is for, and at most. To wake the event loop
and to send a listener something costs the same for one token as for ten (most of it the system's, for the socket), and
meanwhile the engine's thread cannot run Python."""


class Outbox:
    """Collects each listener's actions and the times of steps, and hands them to the event loop.

    What somebody waits for goes out with the step that made it: a first token, a call, an end. Text that continues a
    stream waits for the next if the last went out a moment ago: with 32 streams up to 40 ms, as long as a film
    shows a picture. Steps that take longer than that, as a large model's do, never wait."""

    def __init__(self) -> None:
        self.post: Callable[..., object] | None = None
        """Has a function called in the event loop; as long as there is none, all is passed on at once."""
        self.observer: Observer | None = None
        """Called with the times of steps."""
        self.times = StepTimes()
        self._actions: dict[Listener, list[Action]] = {}
        self._urgent: set[Listener] = set()
        self._last = 0.0

    def put(self, listener: Listener, actions: Iterable[Action], *, urgent: bool = False) -> None:
        """Queue ``actions`` for ``listener``: text that follows text is joined to it. Other actions are ``urgent``."""
        waiting = self._actions.setdefault(listener, [])
        for action in actions:
            last = waiting[-1] if waiting else None
            if isinstance(action, TextDelta) and isinstance(last, TextDelta):
                waiting[-1] = TextDelta(last.text + action.text, last.tokens + action.tokens)
            else:
                waiting.append(action)
                urgent = urgent or not isinstance(action, TextDelta)
        if urgent:
            self._urgent.add(listener)

    def deliver(self, *, more_follows: bool) -> None:
        """Post what it is time for: everything, unless ``more_follows`` soon.

        Raises:
            RuntimeError: if the event loop is closed.
        """
        now = time.monotonic()
        pause = 0.0
        if more_follows and self.post is not None:
            pause = min(_LONGEST_PAUSE, _PAUSE + _PAUSE_A_LISTENER * len(self._actions))
        if now - self._last >= pause:
            actions, self._actions = self._actions, {}
            times, self.times = self.times, StepTimes()
            self._last = now
        else:
            actions, times = {listener: self._actions.pop(listener) for listener in self._urgent}, StepTimes()
        self._urgent.clear()
        if not actions and not times.any:
            return
        if self.post is None:
            self._pass_on(actions, times)
        else:
            self.post(self._pass_on, actions, times)

    def _pass_on(self, actions: dict[Listener, list[Action]], times: StepTimes) -> None:
        for listener, own in actions.items():
            listener(own)
        if self.observer is not None and times.any:
            self.observer(times)
