"""The pages that search is measured on: the same in every run, as many as asked for, and found by their queries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.generated_pages import PASSAGES_A_PAGE, queries, titles, write_pages
from services.wiki_search.passages import split_page

PASSAGES = 1_200


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "pages.jsonl"
    write_pages(path, PASSAGES)
    return path


def test_there_are_as_many_passages_as_asked_for(pages: Path) -> None:
    records = [json.loads(line) for line in pages.read_text().splitlines()]
    assert len(records) == PASSAGES / PASSAGES_A_PAGE
    counts = {len(list(split_page(record))) for record in records}
    assert counts == {PASSAGES_A_PAGE}
    assert [record["wikipedia_title"] for record in records] == titles(PASSAGES)
    assert len(set(titles(PASSAGES))) == len(records)


def test_words_fall_as_in_a_language(pages: Path) -> None:
    words = [word for line in pages.read_text().splitlines() for word in " ".join(json.loads(line)["text"]).split()]
    share_of_the = sum(word.casefold() == "the" for word in words) / len(words)
    assert 0.02 < share_of_the < 0.2
    assert len(set(words)) > 5_000


def test_the_same_seed_gives_the_same_pages_and_queries(pages: Path, tmp_path: Path) -> None:
    write_pages(tmp_path / "again.jsonl", PASSAGES)
    assert (tmp_path / "again.jsonl").read_bytes() == pages.read_bytes()
    write_pages(tmp_path / "other.jsonl", PASSAGES, seed=1)
    assert (tmp_path / "other.jsonl").read_bytes() != pages.read_bytes()
    assert queries(titles(PASSAGES), 20) == queries(titles(PASSAGES), 20)


def test_queries_name_a_page_and_a_word_that_is_on_it(pages: Path) -> None:
    texts = {}
    for line in pages.read_text().splitlines():
        record = json.loads(line)
        texts[record["wikipedia_title"]] = " ".join(record["text"]).casefold()
    asked = queries(titles(PASSAGES), 100)
    named = [query for query in asked if query.title]
    assert len({query.text for query in asked}) == 100
    assert len(named) == 50
    for query in named:
        assert query.title is not None
        assert query.text.removeprefix(query.title).strip() in texts[query.title]


def test_more_pages_than_there_are_titles_are_refused() -> None:
    with pytest.raises(ValueError, match=r"titles for .* pages only"):
        titles(100_000_000)
