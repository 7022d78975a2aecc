"""What a client saw of one request, and when. All times are of `time.perf_counter`, in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Record:
    """A request that ``arrived`` (its client may have had to wait for a connection) and ended.

    Tokens often come several at a time: then each counts as if it had taken its share of the wait. Tokens of a call
    that are not shown count as having come when the call began."""

    arrived: float
    ended: float = 0.0
    text: str = ""
    first: float | None = None
    """When the first token came, or was known to have been made."""
    came: list[tuple[float, int]] = field(default_factory=list)
    """When tokens came, and how many."""
    between: list[float] = field(default_factory=list)
    """Seconds between tokens; the wait for a tool is no such time."""
    calls: list[tuple[float, float]] = field(default_factory=list)
    """When each call began and when its answer was there."""
    resumes: list[float] = field(default_factory=list)
    """Seconds from a tool's answer to the next token."""
    recomputed: int = 0
    """Tokens that the server computed again for this request, as far as its client can tell."""
    _latest: float | None = None
    _calling: float | None = None
    _hidden: tuple[float, float | None] | None = None
    """When the call began whose tokens are not shown, and when the token before it came."""
    _resuming: bool = False

    @property
    def tokens(self) -> int:
        """Tokens that were made."""
        return sum(count for _, count in self.came)

    def token(self, now: float, count: int = 1) -> None:
        """``count`` tokens have come together."""
        if count < 1:
            return
        if self._resuming:
            self.resumes.append(now - self.calls[-1][1])
            self._resuming = False
        elif self._latest is not None:
            self.between += [(now - self._latest) / count] * count
        if self.first is None:
            self.first = now
        self.came.append((now, count))
        self._latest = now

    def call(self, now: float, *, shown: bool) -> None:
        """A tool is being called; ``shown``: the call's own tokens have come."""
        if self.first is None:
            self.first = now
        if not shown:
            self._hidden = (now, self._latest)
        self._calling = now

    def answer(self, now: float) -> None:
        """The tool has answered."""
        assert self._calling is not None, "a call ended that had not begun"
        self.calls.append((self._calling, now))
        self._calling, self._resuming = None, True

    def end(self, now: float, made: int) -> None:
        """The request, or its last segment so far, has ended; ``made`` tokens were made, those not shown included."""
        self.ended = now
        missing = made - self.tokens
        if missing > 0:
            began, before = self._hidden or (now, self._latest)
            self.came.append((began, missing))
            if before is not None:
                self.between += [(began - before) / missing] * missing
