"""Batches for training: phrases of the generated world, and real pairs beside them."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer

from demo_world.phrases import LANGUAGES, Phrase, compositions, lexicon
from services.translation.flores import ENGLISH
from services.translation.train_model import EOS, Row, TranslationRecipe, encode
from services.translation.train_sources import Pair

_POOL_PAIRS: Final = 8_000
"""Pairs drawn together and sorted by length, so that little is spent on padding."""
_SHORT_WORDS: Final = 3
_FREQUENT_WORDS: Final = 1_500
_FINAL_MARKS: Final = ".!?。！？؟।¡¿"


class PairPools:
    """Real pairs, ``recipe.lexicon_share`` of them single words, ``recipe.short_share`` what is asked for by itself and
    ``recipe.phrasebook_share`` of the phrasebook, with ``recipe.phrase_share`` of generated phrases.

    Each language's pairs are gone through in a new order each time, so that none is seen twice before all were seen
    once; how often a language's turn comes follows from its number of pairs and ``recipe.temperature``.
    """

    def __init__(self, recipe: TranslationRecipe, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> None:
        self._recipe = recipe
        self._tokenizer = tokenizer
        self._entries = {language: list(lexicon(language)) for language in LANGUAGES}
        self._phrase_count = round(_POOL_PAIRS * recipe.phrase_share)
        shares = (recipe.lexicon_share, recipe.short_share, recipe.phrasebook_share)
        words, short, book = (round(_POOL_PAIRS * share) for share in shares)
        sentences = _POOL_PAIRS - words - short - book - self._phrase_count
        self._turns = [
            *self._shares([pair for pair in pairs if pair.kind == "word"], words, "word"),
            *self._shares(_short(pairs), short, "short"),
            *self._shares([pair for pair in pairs if pair.kind == "phrase"] if book else [], book, "phrasebook"),
            *self._shares([pair for pair in pairs if pair.kind in ("sentence", "document")], sentences, "sentence"),
        ]

    def batches(self, pool: int) -> list[list[Row]]:
        """See `Pools`."""
        rng = random.Random(f"{self._recipe.seed}/{pool}")
        drawn: list[Pair | Phrase] = [*self._drawn_phrases(rng)]
        for turn in self._turns:
            drawn += turn.draw(pool)
        texts = [self._typed(one.text, rng) for one in drawn]
        sources = self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        targets = self._tokenizer.encode_batch_fast([one.english for one in drawn], add_special_tokens=False)
        rows = [
            (_framed(self._tokenizer, one.language, source.ids), _framed(self._tokenizer, ENGLISH, target.ids))
            for one, source, target in zip(drawn, sources, targets, strict=True)
        ]
        longest = self._recipe.positions
        rows = [row for row in rows if max(map(len, row)) <= longest]
        rng.shuffle(rows)  # rows of one length are in any order
        rows.sort(key=lambda row: (len(row[1]), len(row[0])))
        batches = _cut(rows, self._recipe.batch_tokens)
        rng.shuffle(batches)
        return batches

    def _drawn_phrases(self, rng: random.Random) -> Iterator[Phrase]:
        """Of the training side of the split; as many of them are single names as pairs are single words."""
        drawn = compositions(rng.randrange(1 << 62), held_out=False)
        for _ in range(self._phrase_count):
            language = rng.choice(LANGUAGES)
            named = rng.random() < self._recipe.lexicon_share
            yield rng.choice(self._entries[language]) if named else next(drawn).phrase(language)

    def _typed(self, text: str, rng: random.Random) -> str:
        if rng.random() >= self._recipe.plain_share:
            return text
        return text.lower().strip(_FINAL_MARKS) or text

    def _shares(self, pairs: Iterable[Pair], count: int, kind: str) -> Iterator[_Turn]:
        by_language: defaultdict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            by_language[pair.language[:3]].append(pair)
        weights = {name: len(own) ** (1 / self._recipe.temperature) for name, own in by_language.items()}
        for name, own in sorted(by_language.items()):
            share = round(count * weights[name] / sum(weights.values()))
            yield _Turn(own, max(1, share), f"{self._recipe.seed}/{kind}/{name}")


def _short(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Sentences of three words at most, and of each language the words whose English is the most frequent."""
    frequency = Counter(word for pair in pairs if pair.kind == "sentence" for word in pair.english.lower().split())
    counts = Counter[str]()
    for pair in sorted(pairs, key=lambda pair: -frequency[pair.english.lower()]):
        if pair.kind == "word" and counts[pair.language] < _FREQUENT_WORDS:
            counts[pair.language] += 1
            yield pair
    for pair in pairs:
        if pair.kind == "sentence" and len(pair.english.split()) <= _SHORT_WORDS:
            yield pair


class _Turn:
    """What one language gives to each pool."""

    def __init__(self, pairs: Sequence[Pair], count: int, seed: str) -> None:
        self._pairs = pairs
        self._count = count
        self._seed = seed
        self._order: tuple[int, np.ndarray[Any, np.dtype[np.int64]]] | None = None

    def draw(self, pool: int) -> list[Pair]:
        first = pool * self._count
        return [self._at(number) for number in range(first, first + self._count)]

    def _at(self, number: int) -> Pair:
        time, place = divmod(number, len(self._pairs))
        if self._order is None or self._order[0] != time:
            seed = random.Random(f"{self._seed}/{time}").randrange(1 << 62)
            self._order = time, np.random.default_rng(seed).permutation(len(self._pairs))
        return self._pairs[int(self._order[1][place])]


def _cut(rows: Sequence[Row], tokens: int) -> list[list[Row]]:
    """Neighbours together, as many as fill ``tokens`` with their padding."""
    batches: list[list[Row]] = []
    widest = 0
    for row in rows:
        width = max(map(len, row))
        widest = max(widest, width)
        if not batches or 2 * widest * (len(batches[-1]) + 1) > tokens:
            batches.append([])
            widest = width
        batches[-1].append(row)
    return batches


def _framed(tokenizer: Tokenizer, language: str, ids: list[int]) -> list[int]:
    return [*encode(tokenizer, language, "")[:1], *ids, EOS]
