"""What a guidebook has: words with their article and without it, and everyday phrases as they are written and typed.

The bundled encyclopedia states the same (`demo_world.facts`, tables ``words`` and ``sayings``). Sentences of corpora
teach a greeting badly: Portuguese *obrigado* is "obliged" in a dictionary, and what is said most often is in the sets
that are left out for tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from demo_world.facts.fact_pages import FactRow, fact_rows
from services.translation.train_sources import Pair

_LANGUAGES: Final[Mapping[str, str]] = {
    "spanish": "spa_Latn",
    "french": "fra_Latn",
    "german": "deu_Latn",
    "italian": "ita_Latn",
    "portuguese": "por_Latn",
    "dutch": "nld_Latn",
    "russian": "rus_Cyrl",
    "chinese": "zho_Hans",
    "arabic": "arb_Arab",
    "hindi": "hin_Deva",
    "vietnamese": "vie_Latn",
}
_ARTICLES: Final[Mapping[str, re.Pattern[str]]] = {
    "spanish": re.compile(r"(el|la) "),
    "french": re.compile(r"(le|la) |l'"),
    "german": re.compile(r"(der|die|das) "),
    "italian": re.compile(r"(il|lo|la) |l'"),
    "portuguese": re.compile(r"[oa] "),
    "dutch": re.compile(r"(de|het) "),
}
_THE: Final = "the "
_STOPS: Final[Mapping[str, str]] = {"chinese": "。", "hindi": "।"}
_FINAL_MARKS: Final = ("?", "？", "؟")


def phrasebook() -> Iterator[Pair]:
    """Every entry: a word with its article (*la tortuga*, "the turtle") and bare; a phrase as it is, as a sentence, and
    with its capital alone."""
    for row in fact_rows("words"):
        for language, text in _cells(row):
            bare = row.name.removeprefix(_THE)
            if article := _ARTICLES[language].match(text) if language in _ARTICLES else None:
                yield _pair(language, text, _THE + bare)
                text = text[article.end() :]
            yield _pair(language, text, bare)
    for row in fact_rows("sayings"):
        for language, text in _cells(row):
            written, english = _begun(text), _begun(row.name)
            yield _pair(language, text, row.name)
            yield _pair(language, _ended(written, _STOPS.get(language, ".")), _ended(english, "."))
            if written != text:
                yield _pair(language, written, english)


def _cells(row: FactRow) -> Iterator[tuple[str, str]]:
    for language, (text,) in row.values.items():
        yield language, text


def _pair(language: str, text: str, english: str) -> Pair:
    return Pair("phrase", _LANGUAGES[language], text, english)


def _begun(text: str) -> str:
    """``text`` with a capital."""
    start = next(place for place, character in enumerate(text) if character.isalpha())
    return text[:start] + text[start].upper() + text[start + 1 :]


def _ended(text: str, stop: str) -> str:
    return text if text.endswith(_FINAL_MARKS) else text + stop
