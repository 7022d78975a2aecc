"""Whether a text has begun to go round in circles, as greedy decoding of small models does (Holtzman et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_LONGEST: Final = 16
"""Tokens of a stretch that comes again and again."""
_FEWEST: Final = 12
"""Tokens of all its repeats together: a word said four times may be meant."""


def repeated(ids: Sequence[int], times: int) -> Sequence[int]:
    """The stretch that ``ids`` end with ``times`` times or more; empty if there is none."""
    for length in range(1, min(_LONGEST, len(ids) // times) + 1):
        whole = max(times * length, _FEWEST)
        if ids[-1] == ids[-1 - length] and len(ids) >= whole and ids[-whole:-length] == ids[-whole + length :]:
            return ids[-length:]
    return ()
