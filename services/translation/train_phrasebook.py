"""What a guidebook has: words with their article and without it, and everyday phrases as they are written and typed.

The bundled encyclopedia states the same (`demo_world.facts`, tables ``words`` and ``sayings``). Sentences of corpora
teach a greeting badly: Portuguese *obrigado* is "obliged" in a dictionary, and what is said most often is in the sets
that are left out for tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from demo_world.facts.fact_pages import FactRow, fact_rows
from services.translation.train_dictionary import ARTICLES
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
_ELIDED: Final = {"fra_Latn": "l'", "ita_Latn": "l'"}
_THE: Final = "the "
_STOPS: Final[Mapping[str, str]] = {"zho_Hans": "。", "hin_Deva": "।"}
_FINAL_MARKS: Final = ("?", "？", "؟")


def phrasebook() -> Iterator[Pair]:
    """Every entry: a word with its article (*la tortuga*, "the turtle") and bare; a phrase as it is, as a sentence, and
    with its capital alone."""
    for row in fact_rows("words"):
        for language, text in _cells(row):
            english, bare = row.name.removeprefix(_THE), _without_article(language, text)
            if bare != text:
                yield Pair("phrase", language, text, _THE + english)
            yield Pair("phrase", language, bare, english)
    for row in fact_rows("sayings"):
        for language, text in _cells(row):
            written, english = _begun(text), _begun(row.name)
            yield Pair("phrase", language, text, row.name)
            yield Pair("phrase", language, _ended(written, _STOPS.get(language, ".")), _ended(english, "."))
            if written != text:
                yield Pair("phrase", language, written, english)


def _cells(row: FactRow) -> Iterator[tuple[str, str]]:
    for column, (text,) in row.values.items():
        yield _LANGUAGES[column], text


def _without_article(language: str, text: str) -> str:
    if elided := _ELIDED.get(language):
        text = text.removeprefix(elided)
    first, _, rest = text.partition(" ")
    return rest if first in ARTICLES.get(language, {}).values() else text


def _begun(text: str) -> str:
    """``text`` with a capital."""
    start = next(place for place, character in enumerate(text) if character.isalpha())
    return text[:start] + text[start].upper() + text[start + 1 :]


def _ended(text: str, stop: str) -> str:
    return text if text.endswith(_FINAL_MARKS) else text + stop
