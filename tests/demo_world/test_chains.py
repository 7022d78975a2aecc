"""Articles in which one value follows from another: both calls are known, right, and where they help."""

from collections import Counter

import pytest

from demo_world import articles as web
from demo_world.articles import Article
from demo_world.articles.article import Truth
from demo_world.articles.chains import KINDS
from demo_world.splits import is_held_out
from demo_world.texts.calendar import full_date
from demo_world.texts.numbers import rounded, value_of


@pytest.fixture(scope="module")
def articles() -> list[Article]:
    return list(web.articles(300, seed=0, chained=True))


def chain_of(article: Article) -> tuple[Truth, Truth] | None:
    """The call that finds a value, and the one that uses it."""
    for first in article.truths:
        for second in article.truths:
            value = first.answer.replace(",", "")
            if first.tool == "Calendar":
                value = value[-4:]  # of a date, the year
            if second.tool == "Calculator" and second.input.startswith(f"{value} ") and value.isdigit():
                return first, second
            if second.tool == "WikiSearch" and first.tool != "Calculator" and _is_about(first.answer, second.input):
                return first, second
    return None


def _is_about(entity: str, search: str) -> bool:
    return search in {f"{entity.removeprefix('the ')} {relation}" for relation in ("population", "area")}


def test_an_article_depends_on_seed_and_number_alone(articles: list[Article]) -> None:
    assert web.article(7, seed=0, chained=True) == articles[7]
    assert web.article(7, seed=1, chained=True) != articles[7] != web.article(7, seed=0)


def test_the_second_call_uses_what_the_first_found(articles: list[Article]) -> None:
    kinds: Counter[tuple[str, str]] = Counter()
    for article in articles:
        found = chain_of(article)
        assert found is not None, article
        first, second = found
        kinds["date" if first.tool == "Calendar" else "fact", second.tool] += 1
        if second.tool == "Calculator":
            assert rounded(value_of(second.input)) == second.answer
        if first.tool == "Calendar":
            assert first.answer in full_date(article.date)
            assert not is_held_out("date", article.date.isoformat())
    assert set(kinds) == {("date", "Calculator"), ("fact", "Calculator"), ("fact", "WikiSearch")}
    assert min(kinds.values()) > 60
    assert len(KINDS) == 3


def test_most_say_both_values_and_the_others_the_second_alone(articles: list[Article]) -> None:
    with_both = 0
    for article in articles:
        found = chain_of(article)
        assert found is not None
        first, second = found
        assert article.text[second.offset :].startswith(f" {second.answer}")
        if first.offset < second.offset:
            with_both += 1
            assert article.text[first.offset :].startswith(f" {first.answer}")
        else:
            assert first.offset == second.offset
    assert 0.7 * len(articles) < with_both < 0.9 * len(articles)
