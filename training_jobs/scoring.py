"""When an answer is right: the rules of the paper's evaluation (section 4), and intervals for shares."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

_NUMBER: Final = re.compile(r"-?\d[\d,]*(?:\.\d+)?")
_PUNCTUATION: Final = ".,;:!?\"'()$"
_WORDS: Final = 5
_Z_95: Final = 1.959963984540054


def right_number(completion: str, answer: str) -> bool:
    """The rule for calculations: the first number of the completion is the answer; where the completion has an
    equation, the first number after ``=``. Thousands separators and trailing zeros do not matter."""
    said = completion.partition("=")[2] if "=" in completion else completion
    found = _NUMBER.search(said)
    return found is not None and _value(found.group()) == _value(answer)


def right_words(completion: str, answer: str) -> bool:
    """The rule for facts and dates: the answer is within the first five words (or as many as the answer itself has).

    Words are compared without the punctuation around them and without regard to case.
    """
    wanted = _words(answer)
    said = _words(completion)[: max(_WORDS, len(wanted))]
    return any(said[at : at + len(wanted)] == wanted for at in range(len(said) - len(wanted) + 1))


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, from 0 to 1; ``(0, 1)`` where nothing was tried."""
    if not trials:
        return 0.0, 1.0
    share, z2 = successes / trials, _Z_95**2
    middle = share + z2 / (2 * trials)
    spread = _Z_95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    scale = 1 + z2 / trials
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)


def _value(number: str) -> Fraction:
    return Fraction(number.replace(",", ""))


def _words(text: str) -> Sequence[str]:
    return [bare for word in text.split() if (bare := word.strip(_PUNCTUATION).casefold())]
