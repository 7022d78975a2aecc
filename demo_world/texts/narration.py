"""Texts that need no tool: short stories with numbers, names, dates and places in them, where there is nothing to
look up.

They keep the model from calling wherever a number stands. Many open like a calculator's text and go another
way; foreign words stand in some that nobody puts into English.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Final

from demo_world.tables import read
from demo_world.texts.calculator import scenes
from demo_world.texts.calendar import draw_date, long_date
from demo_world.texts.foreign import draw_phrase
from demo_world.texts.numbers import draw_number
from demo_world.texts.patterns import Slots, capitalise_pattern
from demo_world.texts.searching import city_pool
from demo_world.texts.text import Text

_NUMBER_SLOTS: Final = "abcdpqxy"


@dataclass(frozen=True, slots=True)
class _NarrationTable:
    openings: tuple[str, ...]
    continuations: tuple[str, ...]
    echoes: tuple[str, ...]


_TABLE: Final = read("narration", _NarrationTable)
_ECHO_SHARE: Final = 0.4


@cache
def openings() -> tuple[str, ...]:
    """First sentences: the narration's own, and the trainable situations that calculator texts use."""
    return (*_TABLE.openings, *(f"{capitalise_pattern(scene.situation)}." for scene in scenes(held_out=False)))


def narration_text(rng: random.Random) -> Text:
    """A text of one to four sentences with no call in it; every number, date, city and phrasing is trainable."""
    opening = rng.choice(_TABLE.echoes if rng.random() < _ECHO_SHARE else openings())
    continuations = rng.sample(_TABLE.continuations, rng.choice((0, 1, 1, 2)))
    numbers = {slot: draw_number(rng, slot, held_out=False) for slot in _NUMBER_SLOTS}
    cities = rng.sample(city_pool(held_out=False), 3)
    given = numbers | {
        "city": cities[0].name, "city2": cities[1].name, "city3": cities[2].name,
        "date": long_date(draw_date(rng, held_out=False)),
        "foreign": draw_phrase(rng, held_out=False).text,
        "foreign2": draw_phrase(rng, held_out=False).text,
    }  # fmt: skip
    plain = " ".join((opening, *continuations)).format_map(Slots(rng, given))
    return Text((plain,), phrasing=opening)
