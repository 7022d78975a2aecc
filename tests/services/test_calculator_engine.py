"""The calculator's arithmetic, held against fractions over generated expressions, and its named errors."""

import operator
import re
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from services.calculator.engine import MAX_BITS, MAX_CHARS, MAX_DEPTH, MAX_DIGITS, CalculatorError, calculate, rounded
from tests.support.cases import cases

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

EXAMPLES = {**dict(cases(__file__, "results")), "(-1)^" + "9" * 99: "-1", "1^-" + "9" * 99: "1"}

ERRORS = [
    *cases(__file__, "errors"),
    ("1 + " + "ü" * 900, "invalid_syntax", "ü...' at position 5 is not taken"),
    ("1" * (MAX_CHARS + 1), "too_long", "1,001 characters; at most 1,000"),
    (
        "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1),
        "too_deep",
        "more than 100 parentheses are open at position 101",
    ),
    ("1" * (MAX_DIGITS + 1), "too_large", "the number at position 1 has more than 100 digits"),
    ("*".join(["9" * 60] * 2), "too_large", "a value on the way to the result has more than 100 digits"),
    ("9" * MAX_DIGITS + "+1", "too_large", "a value on the way"),
    ("(" * 99 + ".3" + ")^3" * 99, "too_large", "a value on the way"),
    ("+".join(f"{number}^-400" for number in range(1001, 1061)), "too_large", "too many decimals to be exact"),
    ("1" * MAX_DIGITS + "/ .1", "too_large", "a value on the way"),
]


@pytest.mark.parametrize(("expression", "result"), EXAMPLES.items())
def test_examples(expression: str, result: str) -> None:
    assert calculate(expression) == result


@pytest.mark.parametrize(("expression", "code", "message"), ERRORS, ids=range(len(ERRORS)))
def test_named_errors(expression: str, code: str, message: str) -> None:
    with pytest.raises(CalculatorError) as caught:
        calculate(expression)
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
