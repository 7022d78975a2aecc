"""Single words with their English, by the wordnets that share synsets: Open Multilingual Wordnet, CILI, Open English
WordNet."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import yaml

from services.translation.labels import parse_language
from services.translation.scripts import main_script
from services.translation.train_sources import Pair

_LEMMA: Final = re.compile(r"[a-z]{3}:lemma")
_WORD: Final = re.compile(r"\w+")
_NO_WORD: Final = re.compile(r"[\s_.]")
"""Of what is several words, or an abbreviation."""
_MOST_SENSES: Final = 30
"""A word in more synsets than this is a light verb, whose English is any of a hundred."""

ARTICLES: Final[Mapping[str, Mapping[str, str]]] = {
    "deu_Latn": {"der": "der", "die": "die", "das": "das", "eine": "die"},
    "fra_Latn": {"le": "le", "un": "le", "la": "la", "une": "la"},
    "ita_Latn": {"il": "il", "lo": "lo", "la": "la", "una": "la"},
    "nld_Latn": {"de": "de", "het": "het"},
    "por_Latn": {"o": "o", "um": "o", "a": "a", "uma": "a"},
    "spa_Latn": {"el": "el", "un": "el", "la": "la", "una": "la"},
}
"""For the articles that show a word's gender, the definite one."""
_OFTEN: Final = 2
"""So many times a word stands behind its article at least, or it may be no noun."""


def dictionary(omw: Path, english_wordnet: Path, frequency: Mapping[str, int]) -> Iterator[Pair]:
    """For each foreign word the English word whose synsets are most nearly its own, frequent ones preferred.

    Wordnets of other languages do not order their senses, and some were made by machine, so the first sense is not
    known. What counts is the share of both words' synsets that they have in common, times the logarithm of the English
    word's frequency: a word of forty senses, such as *take*, fits every verb a little. A word all of whose English is
    unknown to ``frequency`` is left out, as rare or wrong.

    Args:
        omw: a folder with ``wns/*/*.tab`` and ``cili/ili-map-pwn30.tab``.
        english_wordnet: a folder with the synsets in ``src/yaml/noun.food.yaml`` and the like.
        frequency: how often an English word, written as it is, occurs in real text.
    """
    english = _english_by_synset(omw, english_wordnet)
    senses = Counter(member for members in english.values() for member in members)
    for language, synsets in sorted(_words(omw).items()):
        for word, ids in sorted(synsets.items()):
            if len(ids) > _MOST_SENSES:
                continue
            shared = Counter(member for id_ in sorted(ids) for member in english.get(id_, ()))
            fits = [
                (count / (len(ids) + senses[member] - count) * math.log(frequency[member]), member)
                for member, count in shared.items()
                if frequency.get(member, 0) > 1
            ]
            code = parse_language(language, script := main_script(word))
            if fits and code is not None and code.endswith(f"_{script}"):
                yield Pair("word", code, word, max(fits)[1])


def with_articles(words: Iterable[Pair], sentences: Iterable[Pair]) -> Iterator[Pair]:
    """The ``words`` that stand behind an article in the ``sentences`` of their language, each with its most frequent
    one, as one asks for a word (*la tortuga*, "the turtle")."""
    behind: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for pair in sentences:
        if articles := ARTICLES.get(pair.language):
            for first, second in pairwise(_WORD.findall(pair.text)):
                if definite := articles.get(first.lower()):
                    behind[pair.language, second][definite] += 1
    for word in words:
        for article, count in behind.get((word.language, word.text), Counter[str]()).most_common(1):
            if count >= _OFTEN:
                yield Pair("word", word.language, f"{article} {word.text}", f"the {word.english}")


def _english_by_synset(omw: Path, english_wordnet: Path) -> dict[str, list[str]]:
    """The single English words of each synset of Princeton WordNet 3.0."""
    ids = dict(_columns(omw / "cili" / "ili-map-pwn30.tab"))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {
        ids[synset["ili"]]: [member for member in synset["members"] if " " not in member]
        for path in sorted(english_wordnet.glob("src/yaml/*.*.yaml"))
        for synset in yaml.load(path.read_text(encoding="utf-8"), loader).values()
        if synset.get("ili") in ids
    }


def _words(omw: Path) -> dict[str, dict[str, set[str]]]:
    """The synsets of each single word, by language."""
    words: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for path in sorted(omw.glob("wns/*/*.tab")):
        language = path.stem[-3:]
        for line in path.read_text(encoding="utf-8").splitlines():
            synset, *rest = line.split("\t")
            if language != "eng" and len(rest) > 1 and _LEMMA.fullmatch(rest[0]):
                word = rest[1].strip()
                if word and not _NO_WORD.search(word):
                    words[language][word].add(synset.replace("-s", "-a"))
    return {language: dict(synsets) for language, synsets in words.items()}


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        first, second, *_ = line.split("\t")
        yield first, second.replace("-s", "-a")
