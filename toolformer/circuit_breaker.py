"""Not calling a service that is known to be down, and noticing by itself when it is back.

*Closed*, every attempt is admitted. After ``failure_threshold`` failures in a row it *opens* and admits none, so that
callers fail at once and not after a wait each. ``cool_down_s`` later it is *half-open*: a single attempt, the probe, is
admitted; its success closes the circuit, its failure opens it for another cool-down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

State = Literal["closed", "open", "half_open"]


class Attempt:
    """Leave to try once. Exactly one of the three methods counts: the first that is called."""

    def __init__(self, breaker: CircuitBreaker, *, era: int) -> None:
        self._breaker: CircuitBreaker | None = breaker
        self._era = era

    def succeeded(self) -> None:
        """The service answered, whatever the answer."""
        if (breaker := self._settle()) is not None:
            breaker._succeeded()

    def failed(self) -> None:
        """The service could not be reached or broke off."""
        if (breaker := self._settle()) is not None:
            breaker._failed(self._era)

    def abandoned(self) -> None:
        """The attempt was dropped for a reason that says nothing about the service: another may probe it now."""
        if (breaker := self._settle()) is not None:
            breaker._abandoned(self._era)

    def _settle(self) -> CircuitBreaker | None:
        breaker, self._breaker = self._breaker, None
        return breaker


class CircuitBreaker:
    """The circuit to one service, for use on one event loop.

    Args:
        failure_threshold: failures in a row after which the circuit opens, at least 1.
        cool_down_s: seconds from opening to the next probe.
        clock: seconds on a clock that never goes back.

    Raises:
        ValueError: if ``failure_threshold`` or ``cool_down_s`` is out of range.
    """

    def __init__(
        self, *, failure_threshold: int = 5, cool_down_s: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if failure_threshold < 1:
            raise ValueError(f"failure_threshold must be at least 1, not {failure_threshold}")
        if not cool_down_s >= 0:
            raise ValueError(f"cool_down_s must be 0 or more seconds, not {cool_down_s}")
        self._failure_threshold = failure_threshold
        self._cool_down_s = cool_down_s
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._probing = False
        # Attempts of an earlier era began before the last change of state: their failure is old news.
        self._era = 0

    @property
    def state(self) -> State:
        """The state now; an open circuit turns half-open by the mere passing of time."""
        if self._opened_at is None:
            return "closed"
        return "half_open" if self._clock() >= self._opened_at + self._cool_down_s else "open"

    def admit(self) -> Attempt | None:
        """Leave for one attempt, to be settled by the caller; ``None`` while the circuit is open or being probed."""
        state = self.state
        if state == "closed":
            return Attempt(self, era=self._era)
        if state == "open" or self._probing:
            return None
        self._probing = True
        self._era += 1
        return Attempt(self, era=self._era)

    def _succeeded(self) -> None:
        # Any answer, however old the attempt, shows that the service is there.
        if self._opened_at is not None:
            self._era += 1
        self._failures = 0
        self._opened_at = None
        self._probing = False

    def _failed(self, era: int) -> None:
        if era != self._era:
            return
        self._failures += 1
        if self._probing or self._failures >= self._failure_threshold:
            self._opened_at = self._clock()
            self._probing = False
            self._era += 1

    def _abandoned(self, era: int) -> None:
        if era == self._era:
            self._probing = False
