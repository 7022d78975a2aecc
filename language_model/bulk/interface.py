"""What the jobs that annotate and filter ask of a model M (section 2 of the paper)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

_LEAST_LEFT: Final = 1e-12


@dataclass(frozen=True, slots=True)
class PromptedText:
    """Token ids that follow a shared prompt. Its *places* are behind its first ``first`` ids, behind one more, ... and
    behind the last.

    Raises:
        ValueError: if ``first`` is not between 1 and the number of ids.
    """

    ids: tuple[int, ...]
    first: int

    def __post_init__(self) -> None:
        if not 1 <= self.first <= len(self.ids):
            raise ValueError(f"first must be between 1 and {len(self.ids)}, not {self.first}")

    @property
    def places(self) -> int:
        return len(self.ids) - self.first + 1


@dataclass(frozen=True, slots=True)
class Place:
    """Behind the first ``length`` ids of the ``text``-th of the texts that were read together."""

    text: int
    length: int


@dataclass(frozen=True, slots=True)
class SamplingRule:
    """How continuations are drawn: at ``temperature``, until ``ended`` says so of the bytes so far, at most ``limit``
    tokens. ``stops`` are texts of which one is at the end when ``ended`` is true of a good continuation: a server
    that makes many tokens between two questions is passed them, or as many of the first as it takes."""

    limit: int
    ended: Callable[[bytes], bool]
    temperature: float = 1.0
    stops: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Targets:
    """A sequence, and the indices (1 or more, ascending) of those of its ids whose probability is asked for.

    Raises:
        ValueError: if an index is out of bounds or out of order.
    """

    ids: tuple[int, ...]
    wanted: tuple[int, ...]

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in zip((0, *self.wanted), (*self.wanted, len(self.ids)), strict=True))
        if not ascending:
            raise ValueError(f"wanted must ascend from 1 or more to below {len(self.ids)}: {list(self.wanted)}")


class Reading(Protocol):
    """Texts that a model has read behind a prompt, kept so that samples can branch off anywhere."""

    @property
    def log_probabilities(self) -> list[list[float]]:
        """For each text, the log probability (nats) that the opening token comes next, at each of its places; ``-inf``
        where a server did not say because others are likelier."""
        ...

    def continuations(
        self, places: Sequence[Place], streams: Sequence[Sequence[random.Random]], rule: SamplingRule
    ) -> list[list[bytes]]:
        """At each of ``places``, what the model writes behind the opening token: one continuation for each of the
        place's ``streams`` of random numbers, with the text at which it ended, or as far as ``rule.limit`` let it go.
        The end of a text ends a continuation."""
        ...


H = TypeVar("H")


class BulkModel(Protocol[H]):
    """A causal language model for many texts at once. ``H`` is how it holds a prompt."""

    @property
    def begin_id(self) -> int | None:
        """The token that is before a text; ``None`` if the model has none."""
        ...

    @property
    def max_positions(self) -> int:
        """Tokens of the longest sequence, the prompt's included."""
        ...

    def hold(self, prompt: Sequence[int]) -> H:
        """Compute what all texts behind ``prompt`` (one token or more) share, once."""
        ...

    def read(self, prompt: H, texts: Sequence[PromptedText], opening: int) -> Reading:
        """Read ``texts``, each behind the prompt, with an eye on the token ``opening``. Texts of like length go
        together best.

        Raises:
            ValueError: if a text does not fit the model with the prompt.
        """
        ...

    def score(self, sequences: Sequence[Targets], *, without: int | None = None) -> list[list[float]]:
        """The log probabilities (nats) of each sequence's wanted ids, each given all ids before it. The token
        ``without`` cannot come where another one is wanted: its probability is set to 0, and the others' rise.

        Raises:
            ValueError: if a sequence does not fit the model.
        """
        ...


def barred_elsewhere(
    values: Sequence[float], of_barred: Sequence[float], targets: Sequence[int], barred: int
) -> list[float]:
    """Log probabilities (nats) of ``targets`` once the token ``barred``, whose own are ``of_barred``, cannot come where
    another one is wanted."""
    # Of a token that is all but certain nothing would be left to divide by.
    left = [max(-math.expm1(min(value, 0.0)), _LEAST_LEFT) for value in of_barred]
    return [
        value if target == barred else min(value - math.log(rest), 0.0)
        for value, rest, target in zip(values, left, targets, strict=True)
    ]


def batches_by_length(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices of ``lengths`` in batches of like length, the longest first, each of at most ``budget`` tokens when all
    are padded to its longest (or of one, if that alone is longer)."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
