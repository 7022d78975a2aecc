"""From a KILT page to passages."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.pages import MalformedPageError
from services.sentences import split_sentences, without_accents
from services.wiki_search.lucene import indexed_document, stored_passage
from services.wiki_search.passages import Passage, split_page


def page(*lines: str, title: str = "Oslo", page_id: str = "7") -> dict[str, Any]:
    return {"wikipedia_id": page_id, "wikipedia_title": title, "text": list(lines)}


def test_the_title_line_is_left_out_and_headings_become_a_path() -> None:
    passages = list(
        split_page(
            page(
                "Oslo\n",
                "Oslo is a city. It lies by a fjord.\n",
                "Section::::History:Early years.\n",
                "It was founded long ago.\n",
            )
        )
    )
    assert passages == [
        Passage("7-0", "Oslo", "", "Oslo is a city. It lies by a fjord."),
        Passage("7-1", "Oslo", "History > Early years", "It was founded long ago."),
    ]
    assert [passage.number for passage in passages] == [0, 1]


def test_short_paragraphs_of_a_section_are_put_together() -> None:
    [passage] = split_page(page("Oslo\n", "One fact.\n", "\n", "Another fact.\n"))
    assert passage.text == "One fact. Another fact."


def test_long_sections_are_cut_between_sentences() -> None:
    sentences = [f"Sentence number {n} has exactly seven words." for n in range(40)]
    passages = list(split_page(page("Oslo\n", " ".join(sentences)), passage_words=50))
    assert all(len(passage.text.split()) <= 50 for passage in passages)
    assert all(passage.text.endswith("words.") for passage in passages)
    assert " ".join(passage.text for passage in passages) == " ".join(sentences)


def test_a_sentence_longer_than_a_passage_stays_whole() -> None:
    long = " ".join(["Word"] * 150) + "."
    assert [passage.text for passage in split_page(page("Oslo\n", f"Short. {long}"))] == ["Short.", long]


def test_a_lists_items_become_one_sentence() -> None:
    lines = ["Oslo\n", "Parks:\n", "BULLET::::- Frogner.\n", "BULLET::::1. Tøyen\n", "BULLET::::- \n", "That is all.\n"]
    assert [passage.text for passage in split_page(page(*lines))] == ["Parks: Frogner; Tøyen. That is all."]


def test_a_page_without_text_has_no_passage() -> None:
    assert list(split_page(page("Oslo\n", "Section::::References.\n"))) == []


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({}, "wikipedia_id"),
        ({"wikipedia_id": 7, "wikipedia_title": "Oslo", "text": []}, "wikipedia_id"),
        ({"wikipedia_id": "7", "wikipedia_title": " ", "text": []}, "wikipedia_title"),
        ({"wikipedia_id": "7", "wikipedia_title": "Oslo", "text": "Oslo"}, "text"),
        ({"wikipedia_id": "7", "wikipedia_title": "Oslo", "text": [1]}, "text"),
    ],
)
def test_what_is_no_page_is_refused_by_field(record: dict[str, Any], field: str) -> None:
    with pytest.raises(MalformedPageError, match=field):
        list(split_page(record))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("J. R. R. Tolkien wrote. He did.", ["J. R. R. Tolkien wrote.", "He did."]),
        ("St. John's is a city. Dr. No lives there.", ["St. John's is a city.", "Dr. No lives there."]),
        ("It cost 3.50 euros in 1999. Then more.", ["It cost 3.50 euros in 1999.", "Then more."]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        ("see www.example.org for more", ["see www.example.org for more"]),
        ("", []),
    ],
)
def test_sentence_borders(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(st.text())
def test_splitting_loses_no_word(text: str) -> None:
    assert " ".join(split_sentences(text)).split() == text.split()


@given(st.lists(st.text(alphabet="ab. \n", min_size=1)), st.integers(1, 20))
def test_passages_hold_every_word_once(paragraphs: list[str], limit: int) -> None:
    record = page("Oslo\n", *paragraphs)
    words = [word for passage in split_page(record, limit) for word in passage.text.split()]
    assert words == [word for paragraph in paragraphs for word in paragraph.split()]


@given(st.text(), st.text(), st.text())
def test_a_stored_document_gives_its_passage_back(title: str, section: str, text: str) -> None:
    passage = Passage("1-0", title, section, text)
    assert stored_passage(json.dumps(indexed_document(passage))) == passage


def test_titles_are_indexed_without_accents_too() -> None:
    assert without_accents("São Paulo") == "Sao Paulo"
    assert indexed_document(Passage("1-0", "São Paulo", "", "x"))["title"] == "São Paulo Sao Paulo"
    assert indexed_document(Passage("1-0", "Oslo", "", "x"))["title"] == "Oslo"
