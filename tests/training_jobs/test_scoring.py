"""The evaluation's rules, case by case."""

import pytest

from training_jobs.scoring import right_number, right_words, wilson_interval


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        (" 408 books.", "408", True),
        (" about 408 books in 24 boxes", "408", True),
        (" 24 boxes hold 408", "408", False),
        (" 24 * 17 = 408", "408", True),
        (" 408 = 400", "408", False),
        (" 1,234.50 dollars", "1234.5", True),
        (" 4080", "408", False),
        (" 40.8", "408", False),
        (" -3", "3", False),
        (" -3 degrees", "-3", True),
        ("", "408", False),
        (" none", "408", False),
        (" 408.", "408", True),
        (" 408, they say", "408", True),
    ],
)
def test_first_number(completion: str, answer: str, right: bool) -> None:
    assert right_number(completion, answer) is right


@pytest.mark.parametrize(
    ("completion", "answer", "right"),
    [
        (" 255,115. That is all.", "255,115", True),
        (" Friday, November 20, 2026.", "Friday, November 20, 2026", True),
        (" friday", "Friday", True),
        (" it is a Friday", "Friday", True),
        (" one two three four Friday", "Friday", True),
        (" one two three four five Friday", "Friday", False),
        (" 16 days", "6", False),
        (" November 20, 2027", "November 20, 2026", False),
        (" the Democratic Republic of the Congo", "the Democratic Republic of the Congo", True),
        ("", "Friday", False),
        (" America/Los_Angeles.", "America/Los_Angeles", True),
        (" Los Angeles", "America/Los_Angeles", False),
    ],
)
def test_answer_within_the_first_words(completion: str, answer: str, right: bool) -> None:
    assert right_words(completion, answer) is right


def test_wilson_interval() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(80, 100)
    assert low == pytest.approx(0.7112, abs=1e-3)
    assert high == pytest.approx(0.8666, abs=1e-3)
    assert wilson_interval(0, 100)[0] == pytest.approx(0.0)
    assert wilson_interval(100, 100)[1] == pytest.approx(1.0)
