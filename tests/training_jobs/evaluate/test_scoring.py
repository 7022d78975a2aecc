"""The evaluation's rules, case by case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training_jobs.evaluate.scoring import (
    FIRST_FIVE,
    FIRST_NUMBER,
    FIRST_TEN,
    FIRST_TWENTY,
    right_number,
    right_words,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        (" 408 books.", "408", True), (" about 408 books in 24 boxes", "408", True),
        (" 24 boxes hold 408", "408", False), (" 4080", "408", False), (" 40.8", "408", False), ("", "408", False),
        (" none", "408", False), (" 408.", "408", True), (" 408, they say", "408", True),
        # equations: the first number after the sign
        (" 24 * 17 = 408", "408", True), (" 408 = 400", "408", False), (" 5+3=8 apples and 2 more", "8", True),
        (" 5 + 3 = -8", "-8", True), (" 1 + 1 = 2, 2 + 2 = 4", "2", True), (" x = y, so 7", "7", True),
        (" 7 is x = y", "7", True), (" 7.\n5+3=8", "7", True), ("\n5+3=8", "8", True),
        # thousands separators, decimals, trailing zeros
        (" 1,234.50 dollars", "1234.5", True), (" 1,234,567", "1234567", True), (" 12,34", "12", True),
        (" 3,5", "3", True), (" 1,2345", "1", True), (" 4.00", "4", True), (" .5", "0.5", True),
        (" No.5", "5", True), (" 0.33", "0.33333333", True), (" 0.34", "0.33333333", False),
        (" 0.67", "0.66666667", True), (" -0.67", "-0.66666667", True), (" 0.3", "0.33333333", False),
        # signs
        (" -3", "3", False), (" -3 degrees", "-3", True), (" −3 degrees", "-3", True), (" 10-3", "10", True),
        (" A-3", "3", True), (" (-3)", "-3", True), (" - 3 apples", "3", True),
        # currency and units
        (" $5", "5", True), (" $ 5", "5", True), (" -$5.25", "-5.25", True), (" $-5", "-5", True),
        (" €1,200", "1200", True), (" 50%", "50", True), (" 12cm", "12", True), (" 3 boxes of 4", "4", False),
        # other scripts
        (" ٤٠٨", "408", True), (" 408", "408", True), (" １，２３４", "1234", True), ("答えは408です", "408", True),
    ],
)  # fmt: skip
def test_first_number(completion: str, answer: str, right: bool) -> None:
    assert right_number(completion, answer) is right
    assert FIRST_NUMBER.right(completion, ["-999", answer]) is right


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        (" 255,115. That is all.", "255,115", True), (" 255115", "255,115", True),
        (" Friday, November 20, 2026.", "Friday, November 20, 2026", True),
        (" friday", "Friday", True), (" it is a Friday", "Friday", True),
        (" one two three four Friday", "Friday", True),
        (" one two three four five Friday", "Friday", False),
        (" 16 days", "6", False),
        (" November 20, 2027", "November 20, 2026", False),
        (" the Democratic Republic of the Congo", "the Democratic Republic of the Congo", True),
        (" the really very Democratic Republic of the Congo", "the Democratic Republic of the Congo", False),
        ("", "Friday", False),
        (" America/Los_Angeles.", "America/Los_Angeles", True),
        (" Los Angeles", "America/Los_Angeles", False),
        # articles, on either side
        (" United Kingdom", "the United Kingdom", True), (" an apple", "Apple", True),
        (" The The", "The The", True), (" band", "The The", False),
        # punctuation, possessives, abbreviations, typographic variants
        (" “Lima”!", "Lima", True), (" Lima's mayor", "Lima", True), (" Limassol", "Lima", False),
        (" Juventus F.C.", "Juventus FC", True), (" the U.S. Senate", "US", True), (" O’Brien", "O'Brien", True),
        (" ﬁsh", "fish", True), (" 3.5 million", "3.5", True), (" 3.5 million", "3", False), (" +386", "386", True),
        (" 46.05° N, 14.51° E", "46.05° N, 14.51° E", True),
        (" — one, two : three four five", "five", True),
        # scripts without spaces: each letter is a word
        ("東京です", "東京", True), ("答えは東京", "東京", True), ("その答えは東京", "東京", False),
        ("กรุงเทพ", "กรุงเทพ", True),
        # other scripts with spaces
        (" Москва́", "Москва́", True), (" МОСКВА", "Москва", True), (" नई दिल्ली है", "नई दिल्ली", True),
        (" القاهرة.", "القاهرة", True), (" Straße", "STRASSE", True),
        # no letter and no digit
        (" a 🚢 it is", "🚢", True), (" (a ship)", ")", False),
    ],
)  # fmt: skip
def test_answer_within_the_first_five_words(completion: str, answer: str, right: bool) -> None:
    assert right_words(completion, answer) is right
    assert FIRST_FIVE.right(completion, [answer]) is right


def test_any_alias_will_do() -> None:
    assert FIRST_TWENTY.right(" it was Samuel Clemens", ["Mark Twain", "Samuel Clemens"])
    assert not FIRST_TWENTY.right(" it was Twain", ["Mark Twain", "Samuel Clemens"])


@pytest.mark.parametrize(("rule", "limit"), [(FIRST_FIVE, 5), (FIRST_TEN, 10), (FIRST_TWENTY, 20)])
def test_each_suite_looks_at_its_own_number_of_words(rule: object, limit: int) -> None:
    assert right_words(" so" * (limit - 1) + " Lima", "Lima", limit)
    assert not right_words(" so" * limit + " Lima", "Lima", limit)
    assert str(limit) in rule.told  # type: ignore[attr-defined]


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
