"""Numbers in prose: years, shares, prices and counts of a larger world than :mod:`demo_world.texts`' situations, each
with the number that follows from them."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Final

from demo_world.articles.article import Piece
from demo_world.articles.wording import WORDING
from demo_world.texts.calculator import TOOL
from demo_world.texts.numbers import NUMBER, number_is_held_out, rounded, value_of
from demo_world.texts.patterns import Known, Slots, render
from demo_world.texts.searching import city_pool
from demo_world.texts.text import CallSlot

_LARGEST: Final = 10_000_000


def figures_piece(rng: random.Random) -> Piece:
    """A sentence or two with a calculation in them; every number is trainable."""
    while True:
        expression, pattern = rng.choice(WORDING.figures)
        numbers = _draw(rng)
        asked = expression.format_map(numbers)
        value = value_of(asked)
        if not Fraction(1, 100) <= value < _LARGEST:
            continue
        slots = Slots(rng, numbers | {"city": rng.choice(city_pool(held_out=False)).name})
        text = render(pattern, slots, Known(CallSlot(TOOL, asked), rounded(value)), pattern)
        if not any(map(number_is_held_out, NUMBER.findall(text.plain))):
            return Piece(text, ((TOOL, asked),))


def _draw(rng: random.Random) -> dict[str, str]:
    """Numbers by slot: ``{y} < {y2} < {y3}`` years, ``{n} > {m}`` counts, ``{k}`` a small count, ``{r}`` a percentage,
    ``{p}`` a price, ``{x}`` a decimal."""
    years = sorted(rng.sample(range(1720, 2025), 3))
    counts = sorted((_count(rng), _count(rng)))
    return {
        "y": str(years[0]), "y2": str(years[1]), "y3": str(years[2]),
        "m": str(counts[0]), "n": str(counts[1]), "k": str(rng.randrange(2, 30)), "r": str(rng.randrange(2, 99)),
        "p": f"{rng.randrange(1, 400)}.{rng.randrange(1, 20) * 5:02d}",
        "x": f"{rng.randrange(1, 200)}.{rng.randrange(1, 10)}",
    }  # fmt: skip


def _count(rng: random.Random) -> int:
    digits = rng.choice((2, 3, 3, 4, 4, 5))
    return rng.randrange(10 ** (digits - 1), 10**digits)
