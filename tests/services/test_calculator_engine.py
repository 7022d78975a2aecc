"""The calculator's arithmetic, held against fractions over generated expressions, and its named errors."""

import operator
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from services.calculator.engine import MAX_BITS, MAX_CHARS, MAX_DEPTH, MAX_DIGITS, CalculatorError, calculate, rounded

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

EXAMPLES = {
    "400 / 1400": "0.29", "27 + 4 * 2": "35", "10-2-3": "5", "8/4/2": "1", "18 + 12 * 3": "54",
    "(18 + 12) * 3": "90", "2 * (3 + 4) * (5 - 1)": "56", "-3": "-3", "- -3": "3", "+-+3": "-3", "2--3": "5",
    "2*-3": "-6", "-(2+3)": "-5", "-2*3": "-6", ".5": "0.5", "0.5 + .25": "0.75", "007": "7",
    "1,234,567.8": "1234567.8", "1,000 + 1": "1001", "6 × 7": "42", "7 ÷ 2 − 1": "2.5", "\t1\n+\u00a02\r": "3",
    "1/3": "0.33", "2/3": "0.67", "1/8": "0.13", "-1/8": "-0.13", "0.005": "0.01", "-0.005": "-0.01", "0.004": "0",
    "-0.004": "0", "1.10": "1.1", "100": "100", "1/3*3": "1", "0.1+0.2-0.3": "0", "0/5": "0", "-0": "0",
    "99.995": "100", "17% of 340": "57.8", "340 * 17%": "57.8", "17 % OF 340": "57.8", "17%*340": "57.8",
    "50% of 20% of 300": "30", "100 / 10% of 50": "20", "10% of 2^3": "0.8", "17% of 1,234.5 + 10": "219.87",
    "200 + 10%": "220", "200 - 10%": "180", "200 + -10%": "180", "80 + 20 - 10%": "90", "100 - 20% - 10%": "72",
    "200 + 10% * 2": "200.2", "200 + (10%)": "200.1", "200 + 10% of 50": "205", "200 + 10% of 50%": "210",
    "(150 + 50) + 10%": "220", "10% + 5%": "0.15", "10% + 200": "200.1", "10% + 5% + 200 + 10%": "220.17",
    "(1 + 1)%": "0.02", "2^10": "1024", "2 ^ 3 ^ 2": "512", "(2^3)^2": "64", "-2^2": "-4", "(-2)^2": "4",
    "2^-1": "0.5", "2^--2": "4", "2^-2^2": "0.06", "2*3^2": "18", "50%^2": "0.25", "0^0": "1",
    "(-1)^" + "9" * 99: "-1", "1^-" + "9" * 99: "1", "1000 × (1 + 5%)^3": "1157.63",
    "1000 * (1 + 0.05/365)^365": "1051.27", "1,234.5 × 2 ÷ 3 − 1": "822",
}  # fmt: skip

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
    "$5": ("invalid_syntax", "'$' at position 1 is not taken; use numbers and + - * / ^ % ( ) of"),
    "17 % 5": ("invalid_syntax", "'%' before position 6 means percent; write 17% of 340"),
    "17 of 340": ("invalid_syntax", "unexpected 'of' at position 4"),
    "17% of": ("invalid_syntax", "unexpected the end at position 7; expected a number or '('"),
    "17%%": ("invalid_syntax", "unexpected '%' at position 4"),
    "%": ("invalid_syntax", "unexpected '%' at position 1"),
    "2 ^": ("invalid_syntax", "unexpected the end at position 4"),
    "sqrt(16)": ("invalid_syntax", "'sqrt' at position 1 is not taken"),
    "17 percent of 340": ("invalid_syntax", "'percent' at position 4 is not taken"),
    "often": ("invalid_syntax", "'often' at position 1 is not taken"),
    "1 + " + "ü" * 900: ("invalid_syntax", "ü...' at position 5 is not taken"),
    "5!": ("invalid_syntax", "'!' at position 2 is not taken"),
    "2 + 2 =": ("invalid_syntax", "'=' at position 7 is not taken"),
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
    "10^100": ("too_large", "a value on the way"),
    "2^9^9^9^9": ("too_large", "a value on the way"),
    "0.1^9^9": ("too_large", "too many decimals to be exact"),
    "1.1^1000000000": ("too_large", "a value on the way"),
    "(" * 99 + ".3" + ")^3" * 99: ("too_large", "a value on the way"),
    "+".join(f"{number}^-400" for number in range(1001, 1061)): ("too_large", "too many decimals to be exact"),
    "2^0.5": ("fractional_exponent", "the exponent at position 3 is not a whole number"),
    "2^2^(1/2)": ("fractional_exponent", "the exponent at position 5"),
    "(2-2)^-1": ("division_by_zero", "the divisor at position 1 is zero"),
    "1" * MAX_DIGITS + "/ .1": ("too_large", "a value on the way"),
}


@pytest.mark.parametrize(("expression", "result"), EXAMPLES.items())
def test_examples(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(("expression", "expected"), ERRORS.items(), ids=range(len(ERRORS)))
def test_named_errors(expression: str, expected: tuple[str, str]) -> None:
    with pytest.raises(CalculatorError) as caught:
        calculate(expression)
    code, message = expected
    assert caught.value.code == code
    assert message in caught.value.message
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
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "×": operator.mul,
    "÷": operator.truediv, "−": operator.sub,
}  # fmt: skip


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
    """Two expressions joined by an operator, or one with a sign, percent or power: every part in parentheses."""
    sign = draw(st.sampled_from([*OPERATORS, "negated", "percent", "percent of", "power"]))
    left, left_value = draw(parts)
    space = [draw(SPACE) for _ in range(4)]
    if sign == "negated":
        return f"-{space[0]}({left}{space[1]})", -left_value
    if sign == "percent":
        return f"({left}{space[0]}){space[1]}%", left_value / 100
    if sign == "power":
        exponent = draw(st.integers(0 if left_value == 0 else -3, 3))
        value = left_value**exponent
        assume(abs(value) < 10**MAX_DIGITS and value.denominator.bit_length() <= MAX_BITS)  # powers of powers
        return f"({left}{space[0]})^{space[1]}{exponent}", value
    right, right_value = draw(parts)
    if sign == "percent of":
        return f"({left})%{space[0]}of{space[1]}({right}{space[2]})", left_value / 100 * right_value
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
@given(st.integers(0, 9_999), st.lists(st.tuples(st.sampled_from("+-"), st.integers(0, 99), st.booleans()), max_size=6))
def test_percentages_added_and_taken_off(first: int, tail: list[tuple[str, int, bool]]) -> None:
    text, value = str(first), Fraction(first)
    for sign, number, is_percentage in tail:
        text += f" {sign} {number}{'%' * is_percentage}"
        change = value * number / 100 if is_percentage else Fraction(number)
        value = OPERATORS[sign](value, change)
    assert calculate(text) == decimal_reference(value)


@UNTIMED
@given(st.lists(st.tuples(st.sampled_from(["", "-"]), st.integers(1, 3)), min_size=1, max_size=3))
def test_powers_are_taken_from_the_right_and_before_signs(chain: list[tuple[str, int]]) -> None:
    text = "^".join(f"{sign}{number}" for sign, number in chain)
    value: Fraction | None = None
    for sign, number in reversed(chain):
        power = Fraction(number) if value is None else Fraction(number) ** value
        if not isinstance(power, Fraction) or power.denominator.bit_length() > 64:
            return  # a root, or too small to be of interest
        value = -power if sign else power
    assert value is not None
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
@given(
    st.text(max_size=60) | st.text("0123456789+-*/^%().,×÷− of\n", max_size=60) | st.text("0123456789,.", max_size=30)
)
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
