"""What the engine may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """``max_sequences``: sequences that run at once; one whose tool has answered never waits for that.
    ``max_model_len``: tokens of one sequence, prompt and results included. ``max_waiting``: requests that may wait
    before more are refused.

    ``prefill_tokens``: tokens of prompts and results computed in one step beside decoding, so that a long prompt
    cannot stall the sequences that stream. ``cache_tokens``: tokens that the key-value cache may hold, by default
    ``max_sequences`` times ``max_model_len``. ``hold_seconds``: how long a sequence keeps its cache for itself while a
    tool works; later, others may take it. ``reuse_prefixes``: whether what was computed is kept for requests that
    begin alike.

    Raises:
        ValueError: if the cache could not hold one sequence.
    """

    max_sequences: int = 64
    max_model_len: int = 2048
    max_waiting: int = 256
    prefill_tokens: int = 128
    cache_tokens: int | None = None
    hold_seconds: float = 30.0
    reuse_prefixes: bool = True

    def __post_init__(self) -> None:
        if self.budget < self.max_model_len:
            raise ValueError(
                f"a cache of {self.budget} tokens cannot hold one sequence of {self.max_model_len}: "
                "give it more memory or lower max_model_len"
            )

    @property
    def budget(self) -> int:
        """Tokens that the cache may hold."""
        return self.max_sequences * self.max_model_len if self.cache_tokens is None else self.cache_tokens
