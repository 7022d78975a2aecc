"""Dateset: sizes of the paper's table 11, and answers worked out another way."""

import datetime as dt
import re
from collections import Counter

import pytest

from training_jobs.evaluate.dateset import SIZES, dateset, federal_holidays, whole_units

QUESTIONS = dateset()
MONTHS = [dt.date(2000, month, 1).strftime("%B") for month in range(1, 13)]
DAY = rf"({'|'.join(MONTHS)}) (\d+), (\d+)"


def day_of(text: str) -> dt.date:
    found = re.search(DAY, text)
    assert found
    return dt.date(int(found[3]), MONTHS.index(found[1]) + 1, int(found[2]))


def test_sizes_are_the_papers() -> None:
    assert Counter(example.split for example in QUESTIONS) == SIZES
    assert list(SIZES.values()) == [400, 800, 800, 400, 4_000, 1_800, 1_200]
    assert len(QUESTIONS) == 9_400
    assert len({(example.text, example.date) for example in QUESTIONS}) == 9_400
    assert len({example.id for example in QUESTIONS}) == 9_400
    assert len({example.date for example in QUESTIONS}) == 500


def test_a_seed_gives_the_same_and_another_seed_others() -> None:
    assert dateset(0) == QUESTIONS
    assert {example.date for example in dateset(1)} != {example.date for example in QUESTIONS}


def test_days_to_a_date_and_weekdays_of_dates() -> None:
    for example in QUESTIONS:
        assert example.date is not None
        [answer] = example.answers
        if example.split == "days to a date":
            assert abs((day_of(example.text) - example.date).days) == int(answer) <= 4 * 366
            assert ("ago was" in example.text) is (day_of(example.text) < example.date)
        elif example.split == "weekday of a date":
            assert day_of(example.text).strftime("%A") == answer
            assert ("was it" in example.text) is (day_of(example.text) < example.date)


def test_days_near_today_and_in_some_days() -> None:
    near = {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}
    parts = {"day of the week": "%A", "day of the month": "%d", "month": "%B", "year": "%Y"}
    counted = 0
    for example in QUESTIONS:
        assert example.date is not None
        if example.split == "near today":
            found = re.fullmatch(r"What (.+?) (?:is|was) it (.+)\?", example.text)
            assert found
            offset = near[found[2]]
            assert ("was" in example.text) is (offset < 0)
        elif example.split == "in some days":
            found = re.fullmatch(r"What (.+?) will it be in (\d+) days?\?", example.text)
            assert found
            offset = int(found[2])
        else:
            continue
        counted += 1
        day = dt.date.fromordinal(example.date.toordinal() + offset)
        assert example.answers == (day.strftime(parts[found[1]]).lstrip("0"),)
    assert counted == 4_800


@pytest.mark.parametrize(
    ("today", "question", "answer"),
    [
        (dt.date(2020, 3, 31), "What month was it 1 month ago?", "February"),
        (dt.date(2020, 3, 31), "What day of the month was it 1 month ago?", "29"),
        (dt.date(2020, 2, 29), "What day of the month was it 1 year ago?", "28"),
    ],
)
def test_months_that_are_shorter(today: dt.date, question: str, answer: str) -> None:
    from training_jobs.evaluate import dateset as module

    dates = module._Dates(today, module._before(today, int(question.split()[-3]), question.split()[-2]), today)
    found = {text: said for _, text, said in module._a_time_ago(dates)}
    assert found[question] == answer


def test_holidays_are_the_federal_ones() -> None:
    days = dict(federal_holidays(2024))
    assert days["Thanksgiving Day"] == dt.date(2024, 11, 28)
    assert days["Independence Day"] == dt.date(2024, 7, 4)
    assert days["Memorial Day"] == dt.date(2024, 5, 27)
    assert len(days) == 11
    assert len(federal_holidays(2015)) == 10  # before Juneteenth


def test_time_to_a_holiday() -> None:
    christmas = [e for e in QUESTIONS if "Christmas Day this year" in e.text and e.split == "time to a holiday"]
    assert christmas
    for example in christmas:
        assert example.date is not None
        days = abs((dt.date(example.date.year, 12, 25) - example.date).days)
        unit = example.text.split()[2]
        if unit in ("days", "weeks"):
            assert int(example.answers[0]) == days // (1 if unit == "days" else 7)
        elif unit == "years":
            assert example.answers == ("0",)


def test_whole_units() -> None:
    assert whole_units(dt.date(2020, 1, 31), dt.date(2020, 2, 29), "month") == 0
    assert whole_units(dt.date(2020, 1, 31), dt.date(2020, 3, 1), "month") == 1
    assert whole_units(dt.date(2018, 5, 2), dt.date(2020, 5, 1), "year") == 1
    assert whole_units(dt.date(2018, 5, 1), dt.date(2020, 5, 1), "year") == 2
    assert whole_units(dt.date(2020, 5, 1), dt.date(2020, 5, 21), "week") == 2
