"""Texts that say parts of themselves again, from which a small model learns to copy.

A call copies what was read, and the text after it copies the result. Prose repeats itself so seldom that a model of
nine million parameters, 40 million tokens old, foresaw 73 % of what it read again; after 0.8 million tokens of these,
83 %.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

_PART: Final = (4, 40)
"""Tokens of a part; a text has one for each of the larger number of its tokens, and one more."""


def with_parts_again(rng: random.Random, ids: Sequence[int]) -> list[int]:
    """The tokens ``ids`` with parts of them put in again, each at any place after itself: so that nothing but the
    tokens themselves shows that a part is being repeated."""
    puts: list[tuple[int, Sequence[int]]] = []
    for _ in range(1 + len(ids) // _PART[1]):
        start = rng.randrange(len(ids) or 1)
        part = ids[start : start + rng.randint(*_PART)]
        puts.append((rng.randint(start + len(part), len(ids)), part))
    found: list[int] = []
    at = 0
    for place, part in sorted(puts, key=lambda put: put[0]):
        found += [*ids[at:place], *part]
        at = place
    return [*found, *ids[at:]]
