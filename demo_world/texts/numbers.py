"""Numbers of the calculator's texts, split into trained-on and held-out, and exact arithmetic to know the answers."""

from __future__ import annotations

import ast
import operator
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from demo_world.splits import is_held_out

NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
"""A number as texts write it; a decimal is one number, not two integers."""

_OPERATORS: Final[dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def number_is_held_out(number: str) -> bool:
    """Whether the number ``number``, as written without trailing zeros, stays out of training texts."""
    whole, _, decimals = number.partition(".")
    decimals = decimals.rstrip("0")
    return is_held_out("number", f"{whole}.{decimals}" if decimals else whole)


def value_of(expression: str) -> Fraction:
    """The exact value of an expression of ``+ - * /``, parentheses and numbers, as the generator writes them.

    Raises :class:`ValueError` for anything else and :class:`ZeroDivisionError` for a division by zero.
    """

    def value(node: ast.expr) -> Fraction:
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Constant):
            # The source text, since Python has made a binary float of "0.1" by now.
            return Fraction(ast.get_source_segment(expression, node) or "")
        raise ValueError(f"not arithmetic: {expression!r}")

    return value(ast.parse(expression, mode="eval").body)


def rounded(value: Fraction) -> str:
    """``value`` rounded half away from zero to two decimals, without trailing zeros: what the calculator answers."""
    hundredths = int(abs(value) * 100 + Fraction(1, 2))
    sign = "-" if value < 0 and hundredths else ""
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}".rstrip("0").rstrip(".")


def draw_number(rng: random.Random, slot: str, *, held_out: bool) -> str:
    """A number for the slot ``a b c d`` (integer of 1 to 4 digits), ``p q`` (price) or ``x y`` (one decimal), from
    the wanted split."""
    while True:
        digits = rng.choices((1, 2, 3, 4), weights=(2, 5, 4, 2))[0]
        integer = rng.randrange(max(2, 10 ** (digits - 1)), 10**digits)
        if slot[0] in "pq":
            number = f"{integer % 1000}.{rng.randrange(1, 20) * 5:02d}"
        elif slot[0] in "xy":
            number = f"{integer % 1000}.{rng.randrange(1, 10)}"
        else:
            number = str(integer)
        if number_is_held_out(number) is held_out:
            return number
