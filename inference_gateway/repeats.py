"""Whether a text has begun to go round in circles, as greedy decoding of small models does (Holtzman et al., 2020)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

_LONGEST: Final = 16
"""Tokens of a stretch that comes again and again."""
_FEWEST: Final = 12
"""Tokens of all its repeats together: a word said four times may be meant."""


def in_circles(ids: Sequence[int], times: int, bytes_of: Callable[[int], bytes]) -> bool:
    """Whether ``ids`` end with the same stretch ``times`` times or more (0: never); the rule of a table, or blanks, may
    come again and again."""
    for length in range(1, min(_LONGEST, len(ids) // times) + 1 if times else 1):
        whole = max(times * length, _FEWEST)
        if ids[-1] == ids[-1 - length] and len(ids) >= whole and ids[-whole:-length] == ids[-whole + length :]:
            return any(map(str.isalnum, b"".join(map(bytes_of, ids[-length:])).decode(errors="ignore")))
    return False
