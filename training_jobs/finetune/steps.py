"""Which texts form a step of the optimizer, and how they are dealt to micro-batches and processes.

A step is ``batch`` texts drawn at random, as in the paper: epoch after epoch, each in an order of its own that seed and
epoch alone decide, so that to resume is to skip. Inside a step the texts are sorted by length and divided into
micro-batches that cost about the same. The loss is the mean over all tokens of the step, so this division has no part
in it; it only keeps padding to a few percent, and neighbouring processes busy for the same time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepPlan:
    """How a run's steps are dealt. ``lengths``: tokens of each text. ``accumulation``: micro-batches of each process in
    a step."""

    lengths: Sequence[int]
    batch: int
    steps: int
    seed: int
    processes: int
    accumulation: int

    @classmethod
    def of(
        cls, lengths: Sequence[int], *, batch: int, steps: int, seed: int, processes: int, micro_batch_tokens: int
    ) -> StepPlan:
        """The plan with as few micro-batches as it takes so that none has more than ``micro_batch_tokens`` tokens,
        padding and all (a single text may).

        Raises:
            ValueError: if ``batch`` has no text for each process.
        """
        if processes > batch:
            raise ValueError(f"a batch of {batch} texts cannot be dealt to {processes} processes: raise --batch")
        most = 1
        for texts in steps_of(len(lengths), batch=batch, steps=steps, seed=seed):
            most = max(
                most, _groups_needed(sorted((lengths[text] for text in texts), reverse=True), micro_batch_tokens)
            )
        accumulation = min(-(-most // processes), batch // processes)
        return cls(lengths, batch, steps, seed, processes, accumulation)

    def micro_batches(self, process: int) -> Iterator[list[int]]:
        """The texts of each micro-batch of ``process``, step after step."""
        groups = self.accumulation * self.processes
        for texts in steps_of(len(self.lengths), batch=self.batch, steps=self.steps, seed=self.seed):
            # Neighbours in length go to different processes, which then wait little for one another.
            yield from dealt(texts, self.lengths, groups)[process :: self.processes]

    def tokens(self) -> list[int]:
        """Tokens of each step, without padding."""
        drawn = steps_of(len(self.lengths), batch=self.batch, steps=self.steps, seed=self.seed)
        return [sum(self.lengths[text] for text in texts) for texts in drawn]


def steps_of(texts: int, *, batch: int, steps: int, seed: int) -> Iterator[list[int]]:
    """The texts (numbers below ``texts``) of each step. An epoch that ends inside a step goes over into the next."""
    waiting: list[int] = []
    epoch = 0
    for _ in range(steps):
        while len(waiting) < batch:
            order = list(range(texts))
            random.Random(seed * 1_000_003 + epoch).shuffle(order)
            waiting += order
            epoch += 1
        yield waiting[:batch]
        del waiting[:batch]


def dealt(texts: Sequence[int], lengths: Sequence[int], groups: int) -> list[list[int]]:
    """``texts`` in ``groups`` parts, none empty, longest texts first: those of like length together, such that the
    largest part (its texts times its longest one) is as small as can be.

    Raises:
        ValueError: if there are fewer texts than groups.
    """
    if len(texts) < groups:
        raise ValueError(f"{len(texts)} texts cannot form {groups} groups")
    order = sorted(texts, key=lambda text: (-lengths[text], text))
    sizes = [lengths[text] for text in order]
    low, high = max(sizes), max(sizes) * len(sizes)
    while low < high:
        middle = (low + high) // 2
        if _groups_needed(sizes, middle) <= groups:
            high = middle
        else:
            low = middle + 1
    parts: list[list[int]] = []
    for text in order:
        if parts and lengths[parts[-1][0]] * (len(parts[-1]) + 1) <= low:
            parts[-1].append(text)
        else:
            parts.append([text])
    while len(parts) < groups:
        widest = max(range(len(parts)), key=lambda at: (len(parts[at]) > 1, lengths[parts[at][0]] * len(parts[at])))
        part = parts[widest]
        parts[widest : widest + 1] = [part[: len(part) // 2], part[len(part) // 2 :]]
    return parts


def _groups_needed(sizes: Sequence[int], most: int) -> int:
    """How many groups neighbouring ``sizes`` (falling) form when none has more than ``most`` tokens with padding."""
    groups = first = count = 0
    for size in sizes:
        if groups and first * (count + 1) <= most:
            count += 1
        else:
            groups, first, count = groups + 1, size, 1
    return groups
