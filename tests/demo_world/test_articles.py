"""Articles: the same for a seed, true at the place they say, and of nothing that is held out."""

import datetime
from collections import Counter

import pytest

from demo_world import articles as web
from demo_world.articles import Article
from demo_world.articles.addresses import slug
from demo_world.articles.wording import WORDING
from demo_world.splits import is_held_out
from demo_world.texts.calculator import TOOL as CALCULATOR
from demo_world.texts.calendar import full_date
from demo_world.texts.numbers import NUMBER, number_is_held_out, rounded, value_of

COUNT = 400


@pytest.fixture(scope="module")
def articles() -> list[Article]:
    return list(web.articles(COUNT, seed=0))


def test_an_article_depends_on_seed_and_number_alone(articles: list[Article]) -> None:
    assert [web.article(number, seed=0) for number in (7, 3)] == [articles[7], articles[3]]
    assert web.article(3, seed=1) != articles[3]


def test_each_call_stands_right_before_its_answer(articles: list[Article]) -> None:
    for article in articles:
        for call in article.truths:
            assert article.text[call.offset :].startswith(f" {call.answer}"), (article.text, call)
        assert [call.offset for call in article.truths] == sorted(call.offset for call in article.truths)
        assert not set("|{}[]") & set(article.text), article.text


def test_calculations_and_dates_are_right(articles: list[Article]) -> None:
    for article in articles:
        for call in article.truths:
            if call.tool == CALCULATOR:
                assert rounded(value_of(call.input)) == call.answer
                assert not any(map(number_is_held_out, NUMBER.findall(call.input)))
            elif call.tool == "Calendar":
                assert call.input == ""
                assert call.answer in full_date(article.date)


def test_a_fact_can_be_asked_for_and_searched_for(articles: list[Article]) -> None:
    by_place: dict[tuple[int, int], set[str]] = {}
    for article in articles:
        for call in article.truths:
            by_place.setdefault((article.number, call.offset), set()).add(call.tool)
    kinds = Counter(frozenset(tools) for tools in by_place.values())
    assert set(kinds) == {frozenset(tools) for tools in ({"QA", "WikiSearch"}, {"Calculator"}, {"Calendar"}, {"MT"})}
    assert min(kinds.values()) > 60


def test_facts_are_many_and_words_vary(articles: list[Article]) -> None:
    questions = [call.input for article in articles for call in article.truths if call.tool == "QA"]
    assert len(set(questions)) > 0.95 * len(questions)
    openings = [" ".join(article.text.split()[:3]) for article in articles]
    assert len(set(openings)) > 0.7 * COUNT


def test_nothing_held_out_is_written(articles: list[Article]) -> None:
    for article in articles:
        assert not is_held_out("date", article.date.isoformat())
        for call in article.truths:
            if call.tool == "WikiSearch" and call.input.endswith(" population"):
                assert not is_held_out("city", call.input.removesuffix(" population")) or "," in call.input


def test_most_that_name_the_day_have_it_in_their_address(articles: list[Article]) -> None:
    dated = [a for a in articles if any(call.tool == "Calendar" for call in a.truths)]
    others = [a for a in articles if a not in dated]
    assert tells_day(dated) > 0.85 * len(dated)
    assert 0.05 * len(others) < tells_day(others) < 0.25 * len(others)


def tells_day(articles: list[Article]) -> int:
    return sum(
        any(digits(part) in digits(a.url) for part in forms(a.date)) or f"day={a.date.day}&" in a.url for a in articles
    )


def forms(date: datetime.date) -> tuple[str, ...]:
    month = f"{date:%b}".lower()
    return (f"{date:%Y%m%d}", f"{date.year}{date.month}{date.day}-", f"{date:%Y}{month}{date:%d}", f"{date:%d}{month}")


def digits(text: str) -> str:
    return text.replace("/", "").replace("-", "").replace("_", "")


def test_paths_with_and_without_a_day_are_told_apart() -> None:
    assert all("{y}" in path and ("{d" in path) for path in WORDING.dated)
    assert not any("{d" in path for path in WORDING.undated)
    assert slug("Notes from São Paulo, 3!") == "notes-from-s-o-paulo-3"
