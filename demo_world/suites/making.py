"""The suites by name, and how each is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from demo_world.articles import articles
from demo_world.phrases import LANGUAGES
from demo_world.splits import stable_hash
from demo_world.suites.drawing import Item, date_question, two_calls, word_problem
from demo_world.suites.entities import fact, question
from demo_world.suites.languages import language_question

COUNT: Final = 200
"""Items of each part of a suite."""
HELD_OUT_TEXTS_SEED: Final = 7_000_000_003
"""The seed of the articles that nobody trains on."""

_REPEATS: Final = 1_000
"""So many draws in a row without a new item say that there are no more."""

_Draw = Callable[[random.Random], Item]


def _halves(draw: Callable[..., Item]) -> dict[str, _Draw]:
    return {
        "known phrasings": partial(draw, held_out_phrasing=False),
        "held-out phrasings": partial(draw, held_out_phrasing=True),
    }


SUITES: Final[Mapping[str, Mapping[str, _Draw]]] = {
    "facts": _halves(fact),
    "word problems": _halves(word_problem),
    "questions": _halves(question),
    "languages": {language: partial(language_question, language=language) for language in LANGUAGES},
    "dates": _halves(date_question),
    "two calls": _halves(partial(two_calls, held_out=True)),
    "two calls in one place": _halves(partial(two_calls, held_out=True, told=False)),
}
"""The parts of each suite."""


def items(suite: str, *, count: int = COUNT, seed: int = 0) -> dict[str, tuple[Item, ...]]:
    """``count`` different items for each part of a suite, in all; ``languages`` has so many together. The same
    arguments give the same items.

    Raises:
        ValueError: for an unknown suite.
    """
    if suite not in SUITES:
        raise ValueError(f"there is no suite {suite!r}; the suites are: {', '.join(SUITES)}")
    parts = SUITES[suite]
    share = -(-count // len(parts)) if suite == "languages" else count
    return {part: different(suite, part, draw, share, seed) for part, draw in parts.items()}


def held_out_texts(count: int) -> tuple[str, ...]:
    """Plain articles that no corpus has: those of a seed set aside. Their facts are the trainable ones, as a crawl's
    held-out pages are about the same world."""
    return tuple(article.text for article in articles(count, seed=HELD_OUT_TEXTS_SEED))


def different(suite: str, part: str, draw: _Draw, count: int, seed: int) -> tuple[Item, ...]:
    """``count`` different items of one part of a suite.

    Raises:
        ValueError: if there are not so many.
    """
    rng = random.Random(stable_hash("own suite", suite, part, str(seed)))
    found: dict[tuple[str, str, object], Item] = {}
    repeated = 0
    while len(found) < count:
        item = draw(rng)
        before = len(found)
        found.setdefault((item.context, item.text, item.date), item)
        repeated = 0 if len(found) > before else repeated + 1
        if repeated == _REPEATS:
            raise ValueError(f"suite {suite}, {part}: no more than {len(found)} items are different: ask for fewer")
    return tuple(found.values())
