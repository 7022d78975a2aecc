"""Which texts are worth a calculator: the three criteria of appendix A of the paper."""

from __future__ import annotations

import random
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from training_jobs.corpora.web.tokens import TokenSpans

WINDOW_TOKENS: Final = 100
DRAWN_SHARE: Final = 0.01
"""Of the texts that only have three numbers so many are kept."""

OPERATION: Final = "a number follows from two others within 100 tokens"
STATED: Final = "= or equals or total of or average of, and a number"
DRAWN: Final = "three numbers, drawn"
NOT_DRAWN: Final = "three numbers, not drawn"
TOO_FEW: Final = "fewer than three numbers"

_NUMBER: Final = r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w]|[.,]\d)"
_FINDER: Final = re.compile(_NUMBER)
_STATED: Final = re.compile(
    rf"(?:=|\b(?:equals|equal to|total of|average of))\s*[$€£¥]?\s*(?:{_NUMBER})", re.IGNORECASE
)
_LONGEST: Final = 15
"""Digits of a number; what is longer is a code, not a count."""


@dataclass(frozen=True, slots=True)
class _Number:
    token: int
    value: int


def judge_calculator(text: str, *, spans: TokenSpans, draw: random.Random) -> tuple[bool, str]:
    """Whether the text is kept, and the reason.

    (i) at least three numbers within 100 tokens, one of them the result of ``+ - * /`` on the other two (a quotient may
    be rounded to two decimals, as the calculator's is); or (ii) ``=``, ``equals``, ``equal to``, ``total of`` or
    ``average of`` with a number right behind; or (iii) at least three numbers and ``draw`` takes the text, as it does
    one in a hundred. A number is digits, with or without separators of thousands and decimals, no part of a word.
    """
    found = [match for match in _FINDER.finditer(text) if len(match.group()) <= _LONGEST]
    if len(found) >= 3:
        starts = [start for start, _ in spans(text)]
        unit = 10 ** max(2, *(len(match.group().partition(".")[2]) for match in found))
        numbers = [_Number(bisect_right(starts, match.start()), _multiple(match.group(), unit)) for match in found]
        if _operation_holds(numbers, unit):
            return True, OPERATION
    if _STATED.search(text):
        return True, STATED
    if len(found) < 3:
        return False, TOO_FEW
    return (True, DRAWN) if draw.random() < DRAWN_SHARE else (False, NOT_DRAWN)


def _operation_holds(numbers: Sequence[_Number], unit: int) -> bool:
    """Whether any window of 100 tokens holds three numbers of which one follows from the other two."""
    end = 0
    for first in range(len(numbers)):
        while end < len(numbers) and numbers[end].token - numbers[first].token < WINDOW_TOKENS:
            end += 1
        # Triples are looked at in the window that begins with their first number.
        if end - first >= 3 and _follows([number.value for number in numbers[first:end]], unit):
            return True
    return False


def _follows(values: Sequence[int], unit: int) -> bool:
    """Whether the first value and two others are ``a op b = c`` in any order; values are multiples of ``1 / unit``."""
    first, others = values[0], values[1:]
    count = Counter(others)
    for other in count:
        # The first value as an operand, or as a sum, difference, product or exact quotient of the others.
        wanted = {first + other, first - other, other - first}
        product, rest = divmod(first * other, unit)
        if not rest:
            wanted.add(product)
        for dividend, divisor in ((first, other), (other, first)):
            if divisor:
                wanted |= _quotients(dividend, divisor, unit)
        # A number is not its own partner.
        if any(count[number] > (number == other) for number in wanted):
            return True
    # The first value as a rounded quotient of two others: what rounds to it lies within half a hundredth of it, and
    # sorted values find that at once.
    sorted_ = sorted(count)
    for divisor in filter(None, sorted_):
        low, high = ((first + sign * unit / 199) / unit * divisor for sign in (-1, 1))
        for dividend in sorted_[bisect_left(sorted_, low) :]:
            if dividend > high:
                break
            if dividend != divisor and first in _quotients(dividend, divisor, unit):
                return True
    return False


def _quotients(dividend: int, divisor: int, unit: int) -> set[int]:
    """The quotient, where it is a multiple of ``1 / unit``, and the quotient to two decimals, half away from zero, as
    the calculator rounds."""
    exact, rest = divmod(dividend * unit, divisor)
    rounded = (dividend * 200 + divisor) // (divisor * 2) * (unit // 100)
    return {rounded} if rest else {exact, rounded}


def _multiple(number: str, unit: int) -> int:
    whole, _, decimals = number.replace(",", "").partition(".")
    return int(whole) * unit + int(decimals.ljust(len(str(unit)) - 1, "0"))
