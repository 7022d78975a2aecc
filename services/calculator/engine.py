"""Arithmetic as people write it, exact inside, two decimals at the end. Never ``eval``.

The paper's calculator has ``+ - * /``, and so have the training texts here; powers and percentages are more than that.

    expression = term, { ("+" | "-"), term }
    term       = share, { ("*" | "/"), share }
    share      = { factor, "of" }, factor                 every factor before an "of" is a percentage
    factor     = sign, percentage, { "^", sign, percentage }
    percentage = primary, [ "%" ]
    primary    = number | "(", expression, ")"
    sign       = { "+" | "-" }
    number     = digits, [ ".", digits ] | ".", digits

Equal operators are taken from the left: ``10-2-3`` is 5 and ``8/4/2`` is 1. Powers are taken from the right and before
a sign: ``2^3^2`` is 512 and ``-2^2`` is -4; an exponent is a whole number, and ``0^0`` is 1.

``17%`` is 0.17, so ``17% of 340`` and ``340 * 17%`` are 57.8. A percentage that is added or taken off is one of all
that is left of it, as on a pocket calculator: ``200 + 10%`` is 220 and ``80 + 20 - 10%`` is 90. Between percentages it
is not (``10% + 5%`` is 0.15), nor in parentheses: ``200 + (10%)`` is 200.1.

``×``, ``÷`` and ``−`` are read as ``*``, ``/`` and ``-``; spaces may be anywhere but inside a number. Digits before
the point may be grouped by commas, then all of them in threes: ``1,234,567.8``, not ``1,23`` and not ``0,123``. ``.5``
is a number; ``3.`` is not: a model that stops there has not finished writing it.

Values are fractions, so no step rounds. The result is rounded half away from zero to two decimals: 0.125 gives ``0.13``
and -0.125 gives ``-0.13``. It has no trailing zeros, no grouping, and zero has no sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

MAX_CHARS: Final = 1_000
"""Characters of an expression."""
MAX_DEPTH: Final = 100
"""Parentheses open at once; each takes four frames of Python's stack."""
MAX_DIGITS: Final = 100
"""Digits before the point, of a number and of every intermediate value."""
MAX_BITS: Final = 5_120
"""Bits of the denominator of every intermediate value. Only powers get there: without them `MAX_CHARS` allows less.
Together with `MAX_DIGITS` it bounds memory and time, and lets a daily rate compound for a year."""

ErrorCode = Literal[
    "empty", "too_long", "too_deep", "too_large", "division_by_zero", "fractional_exponent", "invalid_syntax"
]


class CalculatorError(Exception):
    """The expression has no result.

    Args:
        code: which of the reasons.
        message: the reason in words; for ``invalid_syntax`` with the position, from 1, and what was expected there.
    """

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message


def calculate(expression: str, *, trailing_zeros: bool = False) -> str:
    """The value of ``expression``, rounded to two decimals: ``400 / 1400`` is ``0.29``; see `rounded`.

    Raises:
        CalculatorError: it has none; no other exception, whatever the text.
    """
    if len(expression) > MAX_CHARS:
        message = f"the expression has {len(expression):,} characters; at most {MAX_CHARS:,} are allowed"
        raise CalculatorError("too_long", message)
    return rounded(_Parser(expression).parse(), trailing_zeros=trailing_zeros)


def rounded(value: Fraction, *, trailing_zeros: bool = False) -> str:
    """``value`` with at most two decimals, half away from zero: ``3.7``; with ``trailing_zeros``, as in the paper's
    table 10, ``3.70``, and still ``35`` for a whole number."""
    hundredths = int(abs(value) * 100 + Fraction(1, 2))
    if trailing_zeros and value.denominator > 1:
        whole, decimals = divmod(hundredths, 100)
        return f"{'-' if value < 0 and hundredths else ''}{whole}.{decimals:02d}"
    if hundredths == 0:
        return "0"
    whole, decimals = divmod(hundredths, 100)
    text = f"{whole}.{decimals:02d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 else text


@dataclass(frozen=True)
class _Token:
    kind: Literal["number", "operator", "end"]
    text: str
    position: int
    """Of its first character, counted from 1."""

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


_SAME_SIGN: Final = {"×": "*", "÷": "/", "−": "-"}
_SIGNS: Final = "+-*/^%()"
_NUMBER_LIKE: Final = re.compile(r"[0-9.,]+")
_NUMBER: Final = re.compile(r"([1-9][0-9]{0,2}(,[0-9]{3})+|[0-9]+)(\.[0-9]+)?|\.[0-9]+")
_WORD: Final = re.compile(r"[^\W\d_]+")


def _tokens(expression: str) -> Iterator[_Token]:
    index = 0
    while index < len(expression):
        character = expression[index]
        sign = _SAME_SIGN.get(character, character)
        if number_like := _NUMBER_LIKE.match(expression, index):
            yield _number(number_like.group(), index + 1)
            index = number_like.end()
            continue
        word = _WORD.match(expression, index)
        if word and word.group().lower() == "of":
            yield _Token("operator", "of", index + 1)
            index = word.end()
            continue
        if sign in _SIGNS:
            yield _Token("operator", sign, index + 1)
        elif not character.isspace():
            named = _shortened(word.group() if word else character)
            message = f"{named} at position {index + 1} is not taken; use numbers and {' '.join(_SIGNS)} of"
            raise CalculatorError("invalid_syntax", message)
        index += 1
    yield _Token("end", "", len(expression) + 1)


def _number(text: str, position: int) -> _Token:
    if not _NUMBER.fullmatch(text):
        message = (
            f"{_shortened(text)} at position {position} is not a number; expected digits with at most one point, "
            "digits after the point, and commas only between groups of three digits"
        )
        raise CalculatorError("invalid_syntax", message)
    digits = text.replace(",", "")
    if len(digits.partition(".")[0].lstrip("0")) > MAX_DIGITS:
        message = f"the number at position {position} has more than {MAX_DIGITS} digits before the point"
        raise CalculatorError("too_large", message)
    return _Token("number", digits, position)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:30] + "...")


class _Parser:
    """Recursive descent over the grammar above, evaluating as it goes; one token of look-ahead."""

    def __init__(self, expression: str) -> None:
        self._rest = _tokens(expression)
        self._next = next(self._rest)
        self._depth = 0

    def parse(self) -> Fraction:
        if self._at_end():
            raise CalculatorError("empty", "the expression is empty; write one such as 27 + 4 * 2")
        value = self._expression()
        if not self._at_end():
            raise self._unexpected("an operator or the end")
        return value

    def _at_end(self) -> bool:
        return self._next.kind == "end"

    def _expression(self) -> Fraction:
        value, only_percentages = self._term()
        while operator := self._take("+", "-"):
            right, is_percentage = self._term()
            if is_percentage and not only_percentages:
                right *= value
            only_percentages &= is_percentage
            value = _within_bounds(value + right if operator == "+" else value - right)
        return value

    def _term(self) -> tuple[Fraction, bool]:
        """The term's value, and whether it is nothing but a percentage."""
        value, is_percentage = self._share()
        while operator := self._take("*", "/"):
            position = self._next.position
            right, _ = self._share()
            is_percentage = False
            if operator == "*":
                value = _within_bounds(value * right)
            elif right == 0:
                raise _division_by_zero(position)
            else:
                value = _within_bounds(value / right)
        return value, is_percentage

    def _share(self) -> tuple[Fraction, bool]:
        value, is_percentage = self._factor()
        while is_percentage and self._take("of"):
            right, is_percentage = self._factor()
            value = _within_bounds(value * right)
            if not is_percentage:
                return value, False
        return value, is_percentage

    def _factor(self) -> tuple[Fraction, bool]:
        powers: list[tuple[bool, Fraction, int]] = []
        is_percentage = False
        while not powers or self._take("^"):
            negative = False
            while sign := self._take("+", "-"):
                negative ^= sign == "-"
            position = self._next.position
            value, is_percentage = self._percentage()
            powers.append((negative, value, position))
        negative, value, position = powers.pop()
        value = -value if negative else value
        is_percentage &= not powers
        for negative, base, at in reversed(powers):
            value = _power(base, value, at, position)
            value, position = -value if negative else value, at
        return value, is_percentage

    def _percentage(self) -> tuple[Fraction, bool]:
        value = self._primary()
        if not self._take("%"):
            return value, False
        if self._next.kind == "number" or self._next.text == "(":
            message = f"'%' before position {self._next.position} means percent; write 17% of 340 or 340 * 17%"
            raise CalculatorError("invalid_syntax", message)
        return value / 100, True

    def _primary(self) -> Fraction:
        token = self._next
        if token.kind == "number":
            self._advance()
            return Fraction(token.text)
        if not self._take("("):
            raise self._unexpected("a number or '('")
        if self._depth == MAX_DEPTH:
            message = f"more than {MAX_DEPTH} parentheses are open at position {token.position}"
            raise CalculatorError("too_deep", message)
        self._depth += 1
        value = self._expression()
        self._depth -= 1
        if not self._take(")"):
            raise self._unexpected(f"an operator or ')' for the '(' at position {token.position}")
        return value

    def _take(self, *signs: str) -> str | None:
        """The next token's text if it is one of these signs, which is then behind us."""
        token = self._next
        if token.kind != "operator" or token.text not in signs:
            return None
        self._advance()
        return token.text

    def _advance(self) -> None:
        self._next = next(self._rest)

    def _unexpected(self, expected: str) -> CalculatorError:
        message = f"unexpected {self._next} at position {self._next.position}; expected {expected}"
        return CalculatorError("invalid_syntax", message)


def _power(base: Fraction, exponent: Fraction, base_at: int, exponent_at: int) -> Fraction:
    if exponent.denominator != 1:
        message = f"the exponent at position {exponent_at} is not a whole number; only whole powers are exact"
        raise CalculatorError("fractional_exponent", message)
    if base == 0 and exponent < 0:
        raise _division_by_zero(base_at)
    # The result has at least so many bits. Checked first: to compute it could take for ever.
    bits = max(abs(base.numerator), base.denominator).bit_length() - 1
    if bits * abs(exponent) > MAX_BITS:
        raise _too_large()
    return _within_bounds(base ** int(exponent))


def _within_bounds(value: Fraction) -> Fraction:
    if abs(value) >= 10**MAX_DIGITS or value.denominator.bit_length() > MAX_BITS:
        raise _too_large()
    return value


def _too_large() -> CalculatorError:
    message = f"a value on the way to the result has more than {MAX_DIGITS} digits, or too many decimals to be exact"
    return CalculatorError("too_large", message)


def _division_by_zero(position: int) -> CalculatorError:
    return CalculatorError("division_by_zero", f"the divisor at position {position} is zero")
