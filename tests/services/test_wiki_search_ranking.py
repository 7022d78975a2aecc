"""From Lucene's hits to one line; the terms here are plain lower-case words."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.base import ToolFailure
from services.wiki_search.lucene import Hit
from services.wiki_search.passages import Passage
from services.wiki_search.ranking import best_snippet, essence, numbered
from services.wiki_search.snippets import further_snippets, snippet


def terms(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in {"the", "of", "is", "a", "in"}]


def alike(term: str) -> float:
    return 1.0


def hit(title: str, text: str, score: float = 1.0, number: int = 0) -> Hit:
    return Hit(Passage(f"{title}-{number}", title, "", text), score)


def test_the_sentence_with_the_wanted_word_is_shown() -> None:
    text = "Oslo lies by a fjord. Its population is 700,000. Its mayor is new."
    assert snippet("Oslo", text, frozenset({"population"}), terms) == "Oslo > Its population is 700,000."


def test_the_shortest_run_with_all_wanted_words_is_shown() -> None:
    text = "First. The mayor is new. The population grows. Last."
    assert snippet("Oslo", text, frozenset({"mayor", "population"}), terms) == (
        "Oslo > The mayor is new. The population grows."
    )


def test_without_a_wanted_word_the_beginning_is_shown() -> None:
    assert snippet("Oslo", "It lies by a fjord. More.", frozenset({"xyzzy"}), terms).startswith("Oslo > It lies")


def test_a_long_sentence_is_cut_around_its_words() -> None:
    text = "; ".join(f"City{n}: {n},000" for n in range(60)) + "."
    shown = snippet("Cities", text, frozenset({"city41"}), terms, 80)
    assert shown.startswith("Cities > …City41: 41,000; ")
    assert shown.endswith("…")
    assert len(shown) <= 80


@given(st.text(min_size=1), st.text(min_size=1), st.frozensets(st.sampled_from("abc")), st.integers(60, 300))
def test_no_snippet_is_too_long(title: str, text: str, wanted: frozenset[str], limit: int) -> None:
    assert len(snippet(title, text, wanted, terms, limit)) <= limit


def test_table_tens_form_has_the_section_and_the_whole_sentence() -> None:
    long = "The stained-glass window in the parish church was made in memory of the battle " + "and of its archers " * 8
    page = Passage("1-0", "Battle of Flodden", "Commemoration", f"It is old. {long.strip()}. More of it.")
    hits = [Hit(page, 1.0)]
    assert best_snippet("Flodden window", hits, terms, alike, 200, "section") == (
        f"Battle of Flodden > Commemoration > {long.strip()}."
    )
    cut = best_snippet("Flodden window", hits, terms, alike, 200)
    assert cut.startswith("Battle of Flodden > The stained-glass")
    assert cut.endswith("…")
    opening = Hit(Passage("1-1", "Oslo", "", "Its population is 7. More."), 1.0)
    assert best_snippet("population of Oslo", [opening], terms, alike, 200, "section") == "Oslo > Its population is 7."


@given(st.text(min_size=1), st.text(), st.text(min_size=1), st.frozensets(st.sampled_from("abc")), st.integers(60, 300))
def test_whole_sentences_have_a_limit_too(
    title: str, section: str, text: str, wanted: frozenset[str], limit: int
) -> None:
    assert len(snippet(title, text, wanted, terms, limit, section=section)) <= 2 * limit


def test_cuts_fall_between_words() -> None:
    shown = snippet("Oslo", "alpha beta gamma " * 30, frozenset(), terms, 60)
    assert re.fullmatch(r"Oslo > (?:alpha |beta |gamma )*(?:alpha|beta|gamma)…", shown)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What is the population of Oslo?", "is the population of Oslo?"),
        ("How many people live in Oslo?", "people live in Oslo?"),
        ("population of Oslo", "population of Oslo"),
        ("Answer the following question: who wrote Emma?", "wrote Emma?"),
        ("Question: who wrote Emma?", "wrote Emma?"),
        ("the mind-body question: a history", "the mind-body question: a history"),
        ("Question:", "Question:"),
        ("Who", "Who"),
        ("", ""),
    ],
)
def test_question_words_are_left_out_unless_nothing_else_is_there(query: str, words: str) -> None:
    assert essence(query) == words


def test_the_first_hits_page_gives_its_best_passage() -> None:
    hits = [
        hit("Oslo", "Short one.", 3.0, 2),
        hit("Oslo", "The population is 7.", 2.9, 0),
        hit("Bergen", "Population 9."),
    ]
    assert best_snippet("population of Oslo", hits, terms, alike) == "Oslo > The population is 7."


def test_among_equal_passages_the_earliest_is_taken() -> None:
    hits = [hit("Oslo", "Third.", 3.0, 2), hit("Oslo", "Opening.", 2.9, 0)]
    assert best_snippet("Oslo", hits, terms, alike) == "Oslo > Opening."


def test_a_page_that_the_query_names_beats_its_stem_twin() -> None:
    hits = [hit("Nan", "Nan has 5.", 3.0), hit("Nanning", "Nanning has 7.", 2.9)]
    assert best_snippet("Nanning", hits, terms, alike) == "Nanning > Nanning has 7."


def test_a_named_page_that_ranks_far_below_does_not_win() -> None:
    hits = [hit("World Cup 2010", "Spain won the cup.", 9.0), hit("Spain", "Spain is large.", 3.0)]
    assert best_snippet("which country won: Spain?", hits, terms, alike).startswith("World Cup 2010 > ")


def test_a_named_page_that_says_less_does_not_win() -> None:
    hits = [hit("Spain", "Spain is large.", 9.0), hit("Holidays in Spain", "Book Day: April 23.", 8.9)]
    assert best_snippet("Book Day in Spain", hits, terms, alike).startswith("Holidays in Spain > ")


def test_a_rare_word_counts_more_than_two_common_ones() -> None:
    hits = [hit("Tibet", "Many people live there.", 3.0), hit("Dongcun", "It has 7 inhabitants.", 2.9)]
    rare = {"dongcun": 9.0}
    query = "people who live in Dongcun"
    assert best_snippet(query, hits, terms, lambda term: rare.get(term, 2.0)).startswith("Dongcun > ")
    assert best_snippet(query, hits, terms, alike).startswith("Tibet > ")


def test_accents_and_case_do_not_hide_a_named_page() -> None:
    hits = [hit("Paul", "Paul.", 3.0), hit("São Paulo", "A city.", 2.8)]
    assert best_snippet("population of sao paulo", hits, terms, alike) == "São Paulo > A city."


@pytest.mark.parametrize("query", ["", "  ", "?!", "the", "the of"])
def test_a_query_without_words_is_named(query: str) -> None:
    with pytest.raises(ToolFailure, match="no word"):
        best_snippet(query, [], terms, alike)


def test_no_hit_is_named() -> None:
    with pytest.raises(ToolFailure, match="no page"):
        best_snippet("xyzzy", [], terms, alike)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Oslo mayor", ("Oslo mayor", 1)),
        ("Oslo mayor #2", ("Oslo mayor", 2)),
        (" Oslo mayor  #12 ", ("Oslo mayor", 12)),
        ("#2", ("#2", 1)),
        ("highway #2 length", ("highway #2 length", 1)),
        ("Oslo #123", ("Oslo #123", 1)),
        ("C#2", ("C#2", 1)),
    ],
)
def test_a_number_behind_a_query_is_a_snippets(text: str, found: tuple[str, int]) -> None:
    assert numbered(text) == found


def test_further_snippets_read_on_and_go_to_other_pages() -> None:
    hits = [
        hit("Oslo", "It lies by a fjord. The population is 7. Its mayor is new.", 3.0),
        hit("Oslo", "Trams run. " + "Ferries run far. " * 3, 2.9, 1),
        hit("Bergen", "Rain falls. The population is 9.", 2.0),
    ]
    shown = [best_snippet("population Oslo", hits, terms, alike, 60, number=number) for number in range(1, 6)]
    assert shown == [
        "Oslo > The population is 7.",
        "Oslo > It lies by a fjord. Its mayor is new.",
        "Oslo > Trams run. Ferries run far. Ferries run far.",
        "Oslo > Ferries run far.",
        "Bergen > The population is 9.",
    ]
    for number in (0, 6):
        with pytest.raises(ToolFailure, match=f"there is no snippet #{number}"):
            best_snippet("population Oslo", hits, terms, alike, 60, number=number)


@given(st.text(min_size=1), st.text(), st.text(), st.integers(60, 300))
def test_no_further_snippet_is_too_long(title: str, text: str, shown: str, limit: int) -> None:
    assert all(len(one) <= limit for one in further_snippets(title, text, shown, limit))
