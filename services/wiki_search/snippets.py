"""The part of a passage that answers a query best, as one short line: `Title > text`, or as in the paper's table 10
`Title > Section > whole sentences`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal

from services.sentences import split_sentences

DEFAULT_CHARS: Final = 200
WHOLE_TIMES: Final = 2
"""A whole sentence may be so many times as long as a snippet: 400 characters are about the 96 tokens of GPT-J's that
the registry leaves of a result."""
SnippetForm = Literal["title", "section"]
"""``title``: `Title > text`, a sentence that is too long is cut. ``section``: `Title > Section > text`, with whole
sentences."""
_SEPARATOR: Final = " > "
_ELLIPSIS: Final = "…"

Terms = Callable[[str], list[str]]
"""A text's terms as the index sees them."""


def snippet(
    title: str,
    text: str,
    wanted: frozenset[str],
    terms: Terms,
    max_chars: int = DEFAULT_CHARS,
    *,
    section: str | None = None,
) -> str:
    """`Title > text` in at most `max_chars` characters; with a `section` (empty above a page's first heading) that
    is between them, and a sentence stays whole up to `WHOLE_TIMES` as many characters.

    Shown is the shortest run of sentences, and among those the first, that holds as many of the `wanted` terms as any
    run that fits; where a passage holds none of them, its beginning. A sentence that is too long is cut between
    words around its terms, and an ellipsis marks each cut.
    """
    heading = _heading(title, section, max_chars)
    longest = (max_chars if section is None else WHOLE_TIMES * max_chars) - len(heading)
    return heading + _best_window(text, wanted, terms, max(1, max_chars - len(heading)), longest)


def further_snippets(
    title: str, text: str, shown: str, max_chars: int = DEFAULT_CHARS, *, section: str | None = None
) -> Iterator[str]:
    """The sentences of `text` that a snippet has not `shown` yet, in order, as many at once as fit in `max_chars`
    characters, in a snippet's form; a sentence that is too long is cut."""
    heading, run = _heading(title, section, max_chars), ""
    room = max(1, max_chars - len(heading))
    for sentence in split_sentences(text):
        if sentence in shown:
            continue
        longer = f"{run} {sentence}".lstrip()
        if run and len(longer) > room:
            yield heading + run
            longer = sentence
        run = _cut_end(longer, room)
    if run:
        yield heading + run


def _heading(title: str, section: str | None, max_chars: int) -> str:
    heading = _cut_end(title, max_chars // 2) + _SEPARATOR
    return heading + _cut_end(section, max_chars // 2) + _SEPARATOR if section else heading


def _best_window(text: str, wanted: frozenset[str], terms: Terms, room: int, longest: int) -> str:
    """The best run of sentences in `room` characters; one sentence alone may have `longest`."""
    sentences = split_sentences(text)
    held = [wanted.intersection(terms(sentence)) for sentence in sentences]
    best, best_found = "", -1
    for start in range(len(sentences)):
        found: set[str] = set()
        for end in range(start + 1, len(sentences) + 1):
            window = " ".join(sentences[start:end])
            if len(window) > room and end > start + 1:
                break
            found |= held[end - 1]
            if len(window) > longest:
                window = _best_words(window, wanted, terms, longest)
                found = set(wanted.intersection(terms(window)))
            if len(found) > best_found or (len(found) == best_found and len(window) < len(best) and found):
                best, best_found = window, len(found)
    return best


def _best_words(sentence: str, wanted: frozenset[str], terms: Terms, room: int) -> str:
    """The earliest run of whole words that fits and holds most of the wanted terms."""
    words = sentence.split()
    held = [wanted.intersection(terms(word)) for word in words]
    best, best_found = _cut_end(sentence, room), -1
    for start in range(len(words)):
        if start and not held[start]:
            continue
        window = _cut_end((_ELLIPSIS if start else "") + " ".join(words[start:]), room)
        found = len(set().union(*held[start : start + len(window.split())]))
        if found > best_found:
            best, best_found = window, found
    return best


def _cut_end(text: str, room: int) -> str:
    """`text` in at most `room` characters, cut between words where it has any."""
    if len(text) <= room:
        return text
    kept = text[: room - len(_ELLIPSIS) + 1]
    kept = kept.rsplit(" ", 1)[0] if " " in kept.strip() else kept[:-1]
    return kept.rstrip(" ,;:-") + _ELLIPSIS
