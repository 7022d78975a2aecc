"""The evaluation's rules, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases import cases
from training_jobs.evaluate.scoring import (
    FIRST_FIVE,
    FIRST_NUMBER,
    FIRST_TEN,
    FIRST_TWENTY,
    Rule,
    right_number,
    right_words,
    wilson_interval,
)


@pytest.mark.parametrize(("completion", "answer", "right"), cases(__file__, "first_number"))
def test_first_number(completion: str, answer: str, right: bool) -> None:
    assert right_number(completion, answer) is right
    assert FIRST_NUMBER.right(completion, ["-999", answer]) is right


@pytest.mark.parametrize(("completion", "answer", "right"), cases(__file__, "first_five_words"))
def test_answer_within_the_first_five_words(completion: str, answer: str, right: bool) -> None:
    assert right_words(completion, answer) is right
    assert FIRST_FIVE.right(completion, [answer]) is right


def test_any_alias_will_do() -> None:
    assert FIRST_TWENTY.right(" it was Samuel Clemens", ["Mark Twain", "Samuel Clemens"])
    assert not FIRST_TWENTY.right(" it was Twain", ["Mark Twain", "Samuel Clemens"])


@pytest.mark.parametrize(("rule", "limit"), [(FIRST_FIVE, 5), (FIRST_TEN, 10), (FIRST_TWENTY, 20)])
def test_each_suite_looks_at_its_own_number_of_words(rule: Rule, limit: int) -> None:
    assert rule.right(" so" * (limit - 1) + " Lima", ["Lima"])
    assert not rule.right(" so" * limit + " Lima", ["Lima"])


@given(st.text(max_size=40), st.integers(1, 20))
def test_a_text_contains_itself_and_nothing_contains_nothing(text: str, limit: int) -> None:
    if any(character.isalnum() for character in text):
        assert right_words(text, text, limit)
        assert right_words(f"{text} and so on", text, limit)
    assert not right_words("", text, limit)


@given(st.decimals(-(10**9), 10**9, places=2))
def test_a_number_is_itself_however_it_is_written(number: object) -> None:
    for written in (f"{number:,}", f"{number}", f"{number}0"):
        assert right_number(f" {written} apples", str(number))


def test_wilson_interval() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(80, 100)
    assert low == pytest.approx(0.7112, abs=1e-3)
    assert high == pytest.approx(0.8666, abs=1e-3)
    for trials in range(1, 2_000):
        low, high = wilson_interval(0, trials)
        assert (low, 0 < high < 1) == (0, True)
        low, high = wilson_interval(trials, trials)
        assert (0 < low < 1, high) == (True, 1)
