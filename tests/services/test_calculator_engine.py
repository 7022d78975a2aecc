"""The calculator's arithmetic, held against fractions over generated expressions, and its named errors."""

from __future__ import annotations

import operator
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from services.calculator.engine import MAX_CHARS, MAX_DEPTH, MAX_DIGITS, CalculatorError, calculate, rounded

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

EXAMPLES = {
    "400 / 1400": "0.29",
    "27 + 4 * 2": "35",
    "10-2-3": "5",
    "8/4/2": "1",
    "18 + 12 * 3": "54",
    "(18 + 12) * 3": "90",
    "2 * (3 + 4) * (5 - 1)": "56",
    "-3": "-3",
    "- -3": "3",
    "+-+3": "-3",
    "2--3": "5",
    "2*-3": "-6",
    "-(2+3)": "-5",
    "-2*3": "-6",
    ".5": "0.5",
    "0.5 + .25": "0.75",
    "007": "7",
    "1,234,567.8": "1234567.8",
    "1,000 + 1": "1001",
    "6 × 7": "42",
    "7 ÷ 2 − 1": "2.5",
    "\t1\n+\u00a02\r": "3",
    "1/3": "0.33",
    "2/3": "0.67",
    "1/8": "0.13",
    "-1/8": "-0.13",
    "0.005": "0.01",
    "-0.005": "-0.01",
    "0.004": "0",
    "-0.004": "0",
    "1.10": "1.1",
    "100": "100",
    "1/3*3": "1",
    "0.1+0.2-0.3": "0",
    "0/5": "0",
    "-0": "0",
    "99.995": "100",
}

ERRORS = {
    "": ("empty", "the expression is empty"),
    "  \n": ("empty", "the expression is empty"),
    "1 +": ("invalid_syntax", "unexpected the end at position 4; expected a number or '('"),
    "* 2": ("invalid_syntax", "unexpected '*' at position 1; expected a number or '('"),
    "2 */ 3": ("invalid_syntax", "unexpected '/' at position 4"),
    "2 3": ("invalid_syntax", "unexpected '3' at position 3; expected an operator or the end"),
    "2 (3)": ("invalid_syntax", "unexpected '(' at position 3"),
    "(1 + 2": (
        "invalid_syntax",
        "unexpected the end at position 7; expected an operator or ')' for the '(' at position 1",
    ),
    "1 + 2)": ("invalid_syntax", "unexpected ')' at position 6; expected an operator or the end"),
    "()": ("invalid_syntax", "unexpected ')' at position 2"),
    "2 ** 3": ("invalid_syntax", "unexpected '*' at position 4"),
    "2 ^ 3": ("invalid_syntax", "'^' at position 3 is not part of arithmetic"),
    "50%": ("invalid_syntax", "'%' at position 3"),
    "$5": ("invalid_syntax", "'$' at position 1"),
    "1e5": ("invalid_syntax", "'e' at position 2"),
    "x + 1": ("invalid_syntax", "'x' at position 1"),
    "__import__('os')": ("invalid_syntax", "'_' at position 1"),
    "٣ + 1": ("invalid_syntax", "'٣' at position 1"),
    "1 + \u202e2": ("invalid_syntax", r"'\u202e' at position 5"),
    "1\x002": ("invalid_syntax", r"'\x00' at position 2"),
    "👍": ("invalid_syntax", "'👍' at position 1"),
    "3.": ("invalid_syntax", "'3.' at position 1 is not a number"),
    "1.2.3": ("invalid_syntax", "'1.2.3' at position 1 is not a number"),
    ".": ("invalid_syntax", "'.' at position 1"),
    "2 + 1,23": ("invalid_syntax", "'1,23' at position 5 is not a number"),
    "1,2345": ("invalid_syntax", "groups of three digits"),
    "1234,567": ("invalid_syntax", "groups of three digits"),
    "0,123": ("invalid_syntax", "groups of three digits"),
    "1,234,56": ("invalid_syntax", "groups of three digits"),
    "1,234.567,8": ("invalid_syntax", "groups of three digits"),
    ",5": ("invalid_syntax", "groups of three digits"),
    "1,": ("invalid_syntax", "groups of three digits"),
    "1 / 0": ("division_by_zero", "the divisor at position 5 is zero"),
    "1 / (2 - 2)": ("division_by_zero", "the divisor at position 5 is zero"),
    "0/0.000": ("division_by_zero", "the divisor at position 3"),
    "1" * (MAX_CHARS + 1): ("too_long", "1,001 characters; at most 1,000"),
    "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1): (
        "too_deep",
        "more than 100 parentheses are open at position 101",
    ),
    "1" * (MAX_DIGITS + 1): ("too_large", "the number at position 1 has more than 100 digits"),
    "*".join(["9" * 60] * 2): ("too_large", "a value on the way to the result has more than 100 digits"),
    "9" * MAX_DIGITS + "+1": ("too_large", "a value on the way"),
    "1" * MAX_DIGITS + "/ .1": ("too_large", "a value on the way"),
}


@pytest.mark.parametrize(("expression", "result"), EXAMPLES.items())
def test_examples(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(("expression", "expected"), ERRORS.items(), ids=range(len(ERRORS)))
def test_named_errors(expression: str, expected: tuple[str, str]) -> None:
    with pytest.raises(CalculatorError) as caught:
        calculate(expression)
    code, told = expected
    assert caught.value.code == code
    assert told in caught.value.message
    assert len(caught.value.message) < 250


def test_the_limits_themselves_are_allowed() -> None:
    assert calculate("(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH) == "1"
    assert calculate("-" * (MAX_CHARS - 1) + "1") == "-1"
    assert calculate("0" * 500 + "9" * MAX_DIGITS) == "9" * MAX_DIGITS
    assert calculate("." + "0" * (MAX_CHARS - 2) + "1") == "0"
    assert calculate("(1)" + "+(1)" * 200) == "201"


Valued = tuple[str, Fraction]
"""An expression's text and its value by fraction arithmetic."""

SPACE = st.sampled_from(["", "", " ", "  ", "\t", "\n", "\u00a0"])
OPERATORS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "×": operator.mul,
    "÷": operator.truediv,
    "−": operator.sub,
}


@st.composite
def numbers(draw: st.DrawFn) -> Valued:
    """A number in any of its spellings."""
    whole = draw(st.integers(0, 10**7))
    decimals = draw(st.from_regex(r"(\.[0-9]{1,4})?", fullmatch=True))
    spellings = [f"{whole}{decimals}", f"{whole:,}{decimals}", f"00{whole}{decimals}"]
    if whole == 0 and decimals:
        spellings.append(decimals)
    return draw(st.sampled_from(spellings)), Fraction(f"{whole}{decimals}")


@st.composite
def combined(draw: st.DrawFn, parts: st.SearchStrategy[Valued]) -> Valued:
    """Two expressions joined by an operator, or one with a sign: every part in parentheses."""
    sign = draw(st.sampled_from([*OPERATORS, "negated"]))
    left, left_value = draw(parts)
    space = [draw(SPACE) for _ in range(4)]
    if sign == "negated":
        return f"-{space[0]}({left}{space[1]})", -left_value
    right, right_value = draw(parts)
    if right_value == 0 and OPERATORS[sign] is operator.truediv:
        sign = "+"
    text = f"({space[0]}{left}){space[1]}{sign}{space[2]}({right}{space[3]})"
    return text, OPERATORS[sign](left_value, right_value)


EXPRESSIONS = st.recursive(numbers(), combined, max_leaves=8)


def decimal_reference(value: Fraction) -> str:
    """The rounding rule again, by another road: the decimal module's ROUND_HALF_UP, which is half away from zero."""
    with localcontext(prec=400):
        # Six truncated digits decide every rounding to two: what is cut off cannot reach a half.
        millionths = Decimal(abs(value.numerator) * 10**6 // value.denominator).copy_sign(value.numerator)
        cents = (millionths / 10**6).quantize(Decimal("0.01"), ROUND_HALF_UP)
    text = f"{cents:f}".rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text


@UNTIMED
@given(EXPRESSIONS)
def test_parenthesised_trees_agree_with_fractions(expression: Valued) -> None:
    text, value = expression
    assert calculate(text) == decimal_reference(value)


@UNTIMED
@given(st.integers(0, 99), st.lists(st.tuples(st.sampled_from("+-*/"), st.integers(1, 99), SPACE), max_size=8))
def test_precedence_and_association(first: int, tail: list[tuple[str, int, str]]) -> None:
    text = str(first) + "".join(f"{space}{sign}{space}{number}" for sign, number, space in tail)
    terms = [Fraction(first)]  # Products and quotients fold into the last term, a sum begins a new one.
    for sign, number, _ in tail:
        if sign in "+-":
            terms.append(Fraction(number if sign == "+" else -number))
        else:
            terms[-1] = OPERATORS[sign](terms[-1], number)
    assert calculate(text) == decimal_reference(sum(terms, Fraction(0)))


@UNTIMED
@given(st.fractions())
@example(Fraction(1, 8))
@example(Fraction(-1, 8))
@example(Fraction(-1, 1000))
def test_rounding_is_half_away_from_zero_and_plainly_written(value: Fraction) -> None:
    text = rounded(value)
    assert text == decimal_reference(value)
    assert re.fullmatch(r"0|-?([1-9][0-9]*|0(?=\.))(\.[0-9]?[1-9])?", text)
    assert abs(Fraction(text) - value) <= Fraction(1, 200)


@UNTIMED
@given(st.text(max_size=60) | st.text("0123456789+-*/().,×÷− \n", max_size=60) | st.text("0123456789,.", max_size=30))
@example("\ud800")
@example("1/1/0")
@example("--")
def test_no_text_raises_anything_but_a_calculator_error(text: str) -> None:
    try:
        result = calculate(text)
    except CalculatorError:
        return
    assert re.fullmatch(r"-?[0-9]+(\.[0-9]{1,2})?", result)


@UNTIMED
@given(st.integers(1, 10), st.sampled_from("(-+1/*9.,)"))
def test_a_megabyte_is_refused_at_once(megabytes: int, character: str) -> None:
    with pytest.raises(CalculatorError) as caught:
        calculate(character * megabytes * 1_000_000)
    assert caught.value.code == "too_long"
