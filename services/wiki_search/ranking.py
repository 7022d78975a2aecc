"""From a query to one answer: Lucene finds the page, the query's words find the place on it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from services.base import ToolFailure
from services.sentences import without_accents
from services.wiki_search.lucene import Hit
from services.wiki_search.passages import Passage
from services.wiki_search.snippets import DEFAULT_CHARS, SnippetForm, Terms, further_snippets, snippet

Rarity = Callable[[str], float]
"""How much a term says that is found, from how few passages have it."""

CANDIDATES: Final = 32
"""Hits among which the best page's best passage is looked for."""

NEARLY_AS_HIGH: Final = 0.8
"""The share of the first hit's score from which on another page may take its place."""

# How a question asks, not what about. Anserini's English stop words leave these in, and a page with one of them in its
# title would win by it.
_QUESTION_WORDS: Final = frozenset(
    {
        "what", "which", "who", "whom", "whose", "when", "where", "why", "how", "many", "much", "does", "do",
        "did", "has", "have", "had", "can", "could", "tell", "me", "please",
    }
)  # fmt: skip
_ASKING: Final = re.compile(r"^\s*(please )?(answer (the|this|my)( following)? )?question\s*:", re.IGNORECASE)
"""What stands before a question; words of it would find pages on answers."""
_NUMBERED: Final = re.compile(r"(.*\S)\s+#(\d{1,2})", re.DOTALL)
_NO_WORD: Final = re.compile(r"[\W_]+")
_MARKS: Final = ".,:;?!\"'“”‘’()"


def essence(query: str) -> str:
    """`query` without the words that only make it a question, unless nothing else is in it."""
    words = _ASKING.sub("", query, count=1).split() or query.split()
    return " ".join([word for word in words if word.strip(_MARKS).casefold() not in _QUESTION_WORDS] or words)


def require_words(query: str, terms: Terms) -> None:
    """Passes if `query` has a word to look for.

    Raises:
        ToolFailure: `empty_query`: it holds only punctuation and stop words.
    """
    if not terms(essence(query)):
        raise ToolFailure("empty_query", "the query has no word to look for; name what the page should be about")


def numbered(query: str) -> tuple[str, int]:
    """`query` without a `#2` at its end, and that number: which snippet is wanted. The first, where there is none."""
    found = _NUMBERED.fullmatch(query.strip())
    return (found[1], int(found[2])) if found else (query, 1)


def best_snippet(
    query: str,
    hits: Sequence[Hit],
    terms: Terms,
    rarity: Rarity,
    max_chars: int = DEFAULT_CHARS,
    form: SnippetForm = "title",
    number: int = 1,
) -> str:
    """The answer to `query` as `Title > text`, in at most `max_chars` characters, from its first `CANDIDATES` hits; see
    `SnippetForm`.

    Of the page that `_best_page` picks, the passage among the hits with most of the query's words beyond the title, by
    their rarity, is taken, the earliest where several are equal: a short passage ranks above a page's opening for no
    more than being short.

    Args:
        query: what was searched for.
        hits: what was found for its `essence`, best first.
        terms: a text's terms as the index sees them.
        rarity: how much a term of the query counts.
        max_chars: the most characters of the answer.
        number: from 2 on, to search on: first come the other sentences of the page, as far as it is among the hits,
            then the best snippets of the other hits.

    Raises:
        ToolFailure: see `require_words`; or `no_result`, where there is no hit, or fewer snippets than `number`.
    """
    require_words(query, terms)
    if not hits:
        raise ToolFailure("no_result", "no page has any of the query's words; use other words, or the page's name")
    found = list(islice(_snippets(query, hits, terms, rarity, max_chars, form), number))
    if len(found) < max(1, number):
        raise ToolFailure("no_result", f"there is no snippet #{number} for the query; use other words")
    return found[number - 1]


def _snippets(
    query: str, hits: Sequence[Hit], terms: Terms, rarity: Rarity, max_chars: int, form: SnippetForm
) -> Iterator[str]:
    """What is shown for `query`, best first; see `best_snippet`."""
    asked = frozenset(terms(essence(query)))
    title = _best_page(query, asked, hits, terms, rarity)
    page = [hit.passage for hit in hits if hit.passage.title == title]

    def best(passage: Passage) -> str:
        wanted = asked.difference(terms(passage.title))
        return snippet(passage.title, passage.text, wanted, terms, max_chars, section=_section(passage, form))

    first = best(_best_passage(page, asked.difference(terms(title)), terms, rarity))
    yield first
    for passage in sorted(page, key=lambda one: one.number):
        yield from further_snippets(title, passage.text, first, max_chars, section=_section(passage, form))
    yield from (best(hit.passage) for hit in hits if hit.passage.title != title)


def _section(passage: Passage, form: SnippetForm) -> str | None:
    return passage.section if form == "section" else None


def _best_page(query: str, asked: frozenset[str], hits: Sequence[Hit], terms: Terms, rarity: Rarity) -> str:
    """The title of the hit with most of the `asked` terms by their rarity, of those that rank nearly as high as the
    first.

    Where several have as much, the longest title that stands word for word in `query` wins: stems make `Nanning` and
    `Nan` one term, and the query separates them. Else it is the highest of them.
    """
    words = f" {_plain_words(query)} "

    def rank(hit: Hit) -> tuple[float, int]:
        passage = hit.passage
        held = _held(asked, f"{passage.title} {passage.section} {passage.text}", terms, rarity)
        title = _plain_words(passage.title)
        return held, len(title) if f" {title} " in words else 0

    near = [hit for hit in hits if hit.score >= NEARLY_AS_HIGH * hits[0].score]
    return max(near, key=rank).passage.title


def _plain_words(text: str) -> str:
    return " ".join(_NO_WORD.sub(" ", without_accents(text).casefold()).split())


def _best_passage(passages: Sequence[Passage], wanted: frozenset[str], terms: Terms, rarity: Rarity) -> Passage:
    def rank(passage: Passage) -> tuple[float, int]:
        return -_held(wanted, f"{passage.section} {passage.text}", terms, rarity), passage.number

    return min(passages, key=rank)


def _held(wanted: frozenset[str], text: str, terms: Terms, rarity: Rarity) -> float:
    """How much of the `wanted` terms is in `text`, by their rarity; rounded, for a sum depends on its order."""
    return round(sum(map(rarity, wanted.intersection(terms(text)))), 6)
