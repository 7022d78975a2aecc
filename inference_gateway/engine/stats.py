"""What the engine reports to operators: a snapshot of its state, and how long things took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot: sequences by state, the cache in tokens and bytes, and counts since the start.

    Every sequence that has not ended is in one of three states: ``waiting`` (no memory yet, or taken away), ``running``
    (its prompt is computed or it decodes), ``in_call`` (a tool works for it)."""

    waiting: int = 0
    running: int = 0
    in_call: int = 0

    cache_tokens: int = 0
    """The budget: tokens that the key-value cache may hold."""
    held_tokens: int = 0
    """Those that sequences hold, paused ones included."""
    kept_tokens: int = 0
    """Those kept beyond their sequence's end, for requests that begin alike."""
    paused_tokens: int = 0
    """The part of ``held_tokens`` that sequences in a tool call hold."""
    bytes_per_token: int = 0

    computed_tokens: int = 0
    """Tokens that went through the model."""
    generated_tokens: int = 0
    """Tokens chosen, those of calls taken back included."""
    recomputed_tokens: int = 0
    """The part of ``computed_tokens`` that had been computed before for the same sequence."""
    prefix_queries: int = 0
    """Tokens that sequences began with and that were looked for in the cache."""
    prefix_hits: int = 0
    """The part of ``prefix_queries`` that was there."""
    preemptions: int = 0
    """Decoding sequences stopped for want of memory; they go on later."""
    dropped_pauses: int = 0
    """Sequences in a tool call whose cache was dropped."""

    @property
    def cache_usage(self) -> float:
        """The share of the budget that sequences hold, 0 to 1. Kept tokens do not count: they make way."""
        return self.held_tokens / self.cache_tokens if self.cache_tokens else 0.0

    @property
    def paused_bytes(self) -> int:
        """Bytes of cache that sequences in a tool call hold."""
        return self.paused_tokens * self.bytes_per_token


@dataclass(slots=True)
class StepTimes:
    """What one step ended waiting for, in seconds: from a request's arrival to its ``first`` token, ``between`` tokens
    of a sequence, from a tool's answer to the next token (``resumed``)."""

    first: list[float] = field(default_factory=list)
    between: list[float] = field(default_factory=list)
    resumed: list[float] = field(default_factory=list)

    @property
    def any(self) -> bool:
        return bool(self.first or self.between or self.resumed)


Observer = Callable[[StepTimes], None]
"""Takes the times of each step; called in the event loop's thread."""
