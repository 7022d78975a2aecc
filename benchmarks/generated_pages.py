"""Pages as many as one likes, in KILT's shape, and queries that find them: the same ones for the same seed.

A page is about a thing at a place (`Ljubljana Station`), with places' real names from GeoNames. It has four sections of
five sentences, 57 to 100 words each, and so four passages. Words are made of syllables, 300,000 different ones, and
fall as words of a language do: the chance of the word of rank r is as 1 / (r + 2.7) ** 1.07 (Zipf and Mandelbrot); the
40 most frequent are English function words, most of which indexes leave out. Each section names its own page at its
beginning and another page at its end, as links do.

Half of the queries are a page's title and one rarer word from it; the other half three words of middling frequency.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from demo_world import facts

PASSAGES_A_PAGE: Final = 4
WORDS: Final = 300_000
SENTENCES: Final = 5
_LENGTHS: Final = range(11, 19)
"""Words of a sentence."""
_PAGES_A_BLOCK: Final = 1_000
_KINDS: Final = (
    "",
    " Railway Station",
    " University",
    " Museum",
    " Bridge",
    " Cathedral",
    " County",
    " F.C.",
    " Airport",
)
_SECTIONS: Final = ("", "History", "Geography", "Economy")
_FUNCTION_WORDS: Final = """the of and in to a is was for as on with by he that at from his it an were are which this be
had or has their its one but not also after who they have been two"""
_ONSETS: Final = (
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "br",
    "ch",
    "cl",
    "gr",
    "st",
)
_VOWELS: Final = ("a", "e", "i", "o", "u", "ai", "ea", "ie", "oo", "ou")
_CODAS: Final = ("", "", "", "l", "m", "n", "r", "s", "t", "nd", "st")

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for, and the page it was made from; none for three words that any page may hold."""

    text: str
    title: str | None


def titles(passages: int) -> list[str]:
    """The titles of the pages that hold so many passages: kinds of things at places, the largest places first."""
    count = -(-passages // PASSAGES_A_PAGE)
    places = list(dict.fromkeys(city.name for city in facts.cities()))
    found = [f"{place}{kind}" for kind in _KINDS for place in places[: -(-count // len(_KINDS))]][:count]
    if len(found) < count:
        raise ValueError(f"there are titles for {len(places) * len(_KINDS):,} pages only, not for {count:,}")
    return found


def write_pages(path: Path, passages: int, seed: int = 0) -> None:
    """Write a file of pages with this many passages in all, rounded up to whole pages."""
    names = titles(passages)
    draw = _Draw(seed)
    with path.open("w", encoding="utf-8") as out:
        for first in range(0, len(names), _PAGES_A_BLOCK):
            out.writelines(json.dumps(page) + "\n" for page in draw.pages(names, first))


def queries(names: list[str], count: int, seed: int = 0) -> list[Query]:
    """As many queries, all different, for the pages of these titles that `write_pages` made with the same seed."""
    draw = _Draw(seed)
    rng = np.random.default_rng([seed, 1])
    asked: dict[str, Query] = {}
    while len(asked) < count // 2:
        first = int(rng.integers(len(names)) // _PAGES_A_BLOCK * _PAGES_A_BLOCK)
        numbers, ranks = draw.block(names, first)
        for place in rng.permutation(len(ranks))[:20].tolist():
            rare = [rank for rank in ranks[place].ravel().tolist() if rank > 1_000]
            title = names[int(numbers[place])]
            text = f"{title} {draw.words[int(rng.choice(rare))]}"
            asked[text] = Query(text, title)
    asked = dict(list(asked.items())[: count // 2])
    while len(asked) < count:
        ranks = np.exp(rng.uniform(np.log(100), np.log(20_000), 3)).astype(int)
        text = " ".join(draw.words[rank] for rank in ranks)
        asked[text] = Query(text, None)
    mixed = list(asked.values())
    return [mixed[place] for place in rng.permutation(count).tolist()]


class _Draw:
    """The words and pages of one seed; each block of pages can be drawn by itself."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.words = _vocabulary(seed)
        weights = 1.0 / (np.arange(WORDS) + 2.7) ** 1.07
        self._cumulated = np.cumsum(weights / weights.sum())

    def block(self, names: list[str], first: int) -> tuple[Numbers, Numbers]:
        """Page numbers of a block, and words' ranks (pages, sections, sentences, words); -1 after a sentence's end."""
        rng = self._rng(first)
        numbers = np.arange(first, min(first + _PAGES_A_BLOCK, len(names)))
        shape = (len(numbers), PASSAGES_A_PAGE, SENTENCES)
        ranks = np.searchsorted(self._cumulated, rng.random((*shape, max(_LENGTHS)))).clip(max=WORDS - 1)
        lengths = rng.integers(min(_LENGTHS), max(_LENGTHS) + 1, (*shape, 1))
        return numbers, np.where(np.arange(max(_LENGTHS)) < lengths, ranks, -1)

    def pages(self, names: list[str], first: int) -> Iterator[dict[str, Any]]:
        """The block's pages as KILT has them."""
        numbers, ranks = self.block(names, first)
        links = self._rng(first, 1).integers(len(names), size=ranks.shape[:2])
        for number, page, page_links in zip(numbers.tolist(), ranks.tolist(), links.tolist(), strict=True):
            text = [f"{names[number]}\n"]
            for section, sentences, link in zip(_SECTIONS, page, page_links, strict=True):
                if section:
                    text.append(f"Section::::{section}.\n")
                first_words, *others = [
                    " ".join([self.words[rank] for rank in sentence if rank >= 0]) for sentence in sentences
                ]
                body = ". ".join(other.capitalize() for other in others)
                text.append(f"{names[number]} {first_words}. {body} {names[link]}.\n")
            yield {"wikipedia_id": str(number), "wikipedia_title": names[number], "text": text}

    def _rng(self, first: int, part: int = 0) -> np.random.Generator:
        return np.random.default_rng([self._seed, 2, first, part])


@functools.cache
def _vocabulary(seed: int) -> list[str]:
    """All words, the most frequent first; those have fewer syllables."""
    rng = np.random.default_rng([seed, 0])
    sizes = len(_ONSETS), len(_VOWELS), len(_CODAS)
    syllables = list(map("".join, itertools.product(_ONSETS, _VOWELS, _CODAS)))
    words = dict.fromkeys(_FUNCTION_WORDS.split())
    for length, until in ((1, 300), (2, 20_000), (3, WORDS)):
        while len(words) < until:
            letters = np.moveaxis(rng.integers(0, 1 << 30, (20_000, length, 3)) % sizes, -1, 0)
            for word in np.ravel_multi_index(tuple(letters), sizes).tolist():
                words["".join([syllables[number] for number in word])] = None
                if len(words) == until:
                    break
    return list(words)
