"""Under what conditions a model is asked: calls disabled, or how freely it may call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """``k`` of section 4.2 of the paper: a call may start where it is among the k most likely tokens, 0 disables calls;
    ``max_calls`` bounds the calls of one completion."""

    k: int
    max_calls: int = 1

    @property
    def disabled(self) -> bool:
        """Whether no call may be made."""
        return self.k == 0 or self.max_calls == 0

    @property
    def name(self) -> str:
        """In words, as in the paper's tables."""
        if self.disabled:
            return "disabled"
        calls = "" if self.max_calls == 1 else f", {self.max_calls} calls"
        return f"k = {self.k}{calls}"

    @property
    def folder(self) -> str:
        """The folder of its answers."""
        return "disabled" if self.disabled else f"k{self.k}-calls{self.max_calls}"


DISABLED = Condition(0)


def conditions(ks: Sequence[int], max_calls: Sequence[int]) -> tuple[Condition, ...]:
    """Every combination, each once; all that disable calls are one, which comes first."""
    found = [Condition(k, calls) for k in ks for calls in max_calls]
    enabled = dict.fromkeys(one for one in found if not one.disabled)
    return (*((DISABLED,) if len(enabled) < len(dict.fromkeys(found)) else ()), *enabled)
