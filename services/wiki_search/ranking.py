"""From a query to one answer: Lucene finds the page, the query's words find the place on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from services.wiki_search.lucene import Hit
from services.wiki_search.passages import Passage
from services.wiki_search.snippets import DEFAULT_CHARS, snippet

CANDIDATES: Final = 16
"""Hits among which the best page's best passage is looked for."""

# How a question asks, not what about. Anserini's English stop words leave these in, and a page with one of them in its
# title would win by it.
_QUESTION_WORDS: Final = frozenset(
    {
        "what", "which", "who", "whom", "whose", "when", "where", "why", "how", "many", "much", "does", "do",
        "did", "has", "have", "had", "can", "could", "tell", "me", "please",
    }
)  # fmt: skip
_MARKS: Final = ".,:;?!\"'“”‘’()"


class Search(Protocol):
    """What answering needs of an index."""

    def terms(self, text: str) -> list[str]:
        """A text's terms as the index sees them."""
        ...

    def search(self, query: str, limit: int) -> list[Hit]:
        """The best `limit` passages, best first."""
        ...


class EmptyQueryError(ValueError):
    """A query has no word to look for."""


class NoResultError(LookupError):
    """Nothing in the index has any of the query's words."""


def essence(query: str) -> str:
    """`query` without the words that only make it a question, unless nothing else is in it."""
    words = query.split()
    return " ".join([word for word in words if word.strip(_MARKS).casefold() not in _QUESTION_WORDS] or words)


def find(index: Search, query: str, limit: int, offset: int = 0) -> list[Hit]:
    """Hits `offset` to `offset + limit` for `query`, best first; fewer or none at the end.

    Raises:
        EmptyQueryError: `query` holds only punctuation and stop words.
    """
    words = essence(query)
    if not index.terms(words):
        raise EmptyQueryError("the query has no word to look for; name what the page should be about")
    return index.search(words, offset + limit)[offset:]


def best_snippet(index: Search, query: str, max_chars: int = DEFAULT_CHARS) -> str:
    """The answer to `query` as `Title > text`, in at most `max_chars` characters.

    The page is that of Lucene's first hit. Of its passages among the first `CANDIDATES` hits, the one with most of the
    query's words beyond the title is taken, the earliest where several are equal: short passages rank above a page's
    opening for no more than being short.

    Raises:
        EmptyQueryError: see `find`.
        NoResultError: there is no hit.
    """
    hits = find(index, query, CANDIDATES)
    if not hits:
        raise NoResultError("no page has any of the query's words; use other words, or the page's name")
    title = hits[0].passage.title
    wanted = frozenset(index.terms(essence(query))).difference(index.terms(title))
    passage = _best_passage(index, [hit.passage for hit in hits if hit.passage.title == title], wanted)
    return snippet(title, passage.text, wanted, index.terms, max_chars)


def _best_passage(index: Search, passages: Sequence[Passage], wanted: frozenset[str]) -> Passage:
    def rank(passage: Passage) -> tuple[int, int]:
        covered = wanted.intersection(index.terms(f"{passage.section} {passage.text}"))
        return (-len(covered), passage.number)

    return min(passages, key=rank)
