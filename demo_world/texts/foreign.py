"""Texts that need a translation: English prose that quotes a sentence of another language and then says it in
English."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Final

from demo_world.phrases import LANGUAGES, Phrase, draw_composition
from demo_world.splits import on_side
from demo_world.tables import read
from demo_world.texts.patterns import Known, Slots, capitalise_pattern, render, surround
from demo_world.texts.text import CallSlot, Text

TOOL: Final = "MT"


@dataclass(frozen=True, slots=True)
class _ForeignTable:
    quotes: tuple[str, ...]
    englishes: tuple[str, ...]
    openings: tuple[str, ...]
    tails: tuple[str, ...]


_TABLE: Final = read("foreign", _ForeignTable)


@cache
def quotes(*, held_out: bool) -> tuple[str, ...]:
    """How a foreign sentence is quoted, on one side of the split."""
    return on_side("phrasing", _TABLE.quotes, held_out=held_out)


@cache
def englishes(*, held_out: bool) -> tuple[str, ...]:
    """How its English is introduced, on one side of the split."""
    return on_side("phrasing", _TABLE.englishes, held_out=held_out)


def draw_phrase(rng: random.Random, *, held_out: bool) -> Phrase:
    """A sentence from the wanted side of the split, each language as likely."""
    return draw_composition(rng, held_out=held_out).phrase(rng.choice(LANGUAGES))


def translation_text(rng: random.Random, *, held_out_values: bool = False, held_out_phrasing: bool = False) -> Text:
    """A text with one translation, its sentence and its phrasing from the wanted sides of the split.

    Quoting and saying it in English are held out apart; a text in a held-out phrasing has both held out.
    """
    quote, english = rng.choice(quotes(held_out=held_out_phrasing)), rng.choice(englishes(held_out=held_out_phrasing))
    # A quoted sentence has its full stop before the closing mark, and needs none after it.
    sentence = capitalise_pattern(f"{quote}{english}").replace('". ', '" ')
    pattern = surround(rng, sentence, _TABLE.openings, _TABLE.tails)
    phrase = draw_phrase(rng, held_out=held_out_values)
    slots = Slots(rng, {"foreign": phrase.text})
    known = Known(CallSlot(TOOL, phrase.text), phrase.english.removesuffix("."))
    return render(pattern, slots, known, quote)
