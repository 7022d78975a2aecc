"""Parallel phrases: sentences in twelve languages with their English, made of CLDR's names, dates, numbers and units.

A phrase is a meaning (one pattern a language, ``tables/phrases.toml``) and the values of its slots. Meaning
and values together are a composition; a composition is held out or trained on as a whole, in all languages at once, so
that no language shows another what is held out. The words themselves are not held out: nobody can translate the name of
a country they have never seen.
"""

from __future__ import annotations

import datetime
import random
import string
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from babel import Locale

from demo_world import phrases_values as values
from demo_world.splits import is_held_out
from demo_world.tables import read

ENGLISH_CODE: Final = "eng_Latn"


@dataclass(frozen=True, slots=True)
class Wording:
    """How a language says each meaning; ``locale`` is CLDR's name of it, ``who_wrote`` asks who wrote ``{foreign}``."""

    locale: str
    patterns: Mapping[str, str]
    who_wrote: str = ""


WORDINGS: Final = read("phrases", dict[str, Wording])
"""By FLORES-200 code, what each language says, English among them."""
LANGUAGES: Final = tuple(code for code in WORDINGS if code != ENGLISH_CODE)
"""The languages that phrases are translated from, as FLORES-200 codes."""

_ENGLISH: Final = WORDINGS[ENGLISH_CODE].patterns
_MEANINGS: Final = tuple(_ENGLISH)
_SPLIT: Final = "phrase"
_SPACES: Final = str.maketrans({"\u00a0": " ", "\u202f": " "})


@dataclass(frozen=True, slots=True)
class Phrase:
    """A text, its language (FLORES-200 code), and what it says in English."""

    text: str
    language: str
    english: str


@dataclass(frozen=True, slots=True)
class Composition:
    """What a phrase says, before any language: a meaning and the values of its slots, in order."""

    meaning: str
    slots: tuple[tuple[str, Any], ...]

    @property
    def held_out(self) -> bool:
        """Whether it is kept out of everything that a model is trained on."""
        key = "|".join([self.meaning, *(f"{name}={value}" for name, value in self.slots)])
        return is_held_out(_SPLIT, key)

    def phrase(self, language: str) -> Phrase:
        """The phrase in the language with this FLORES-200 code, with its English.

        Raises:
            KeyError: no patterns are written in that language.
        """
        # CLDR sets narrow spaces, as in 9:30 AM; a reader of plain English text expects plain ones.
        return Phrase(self._text(language), language, self._text(ENGLISH_CODE).translate(_SPACES))

    def _text(self, language: str) -> str:
        wording = WORDINGS[language]
        locale = Locale.parse(wording.locale)
        shown = {name: values.KINDS[_kind(name)].show(value, locale) for name, value in self.slots}
        # An abbreviation at a sentence's end brings its own full stop, as in Russian 2026 г.
        return wording.patterns[self.meaning].format_map(shown).replace("..", ".")


def compositions(seed: int, *, held_out: bool) -> Iterator[Composition]:
    """Compositions without end, of one side of the split; all meanings are equally likely."""
    rng = random.Random(seed)
    while True:
        yield draw_composition(rng, held_out=held_out)


def draw_composition(rng: random.Random, *, held_out: bool, meaning: str | None = None) -> Composition:
    """A composition of one side of the split; all meanings are equally likely, unless one is asked for."""
    while True:
        composition = _draw(rng, meaning or rng.choice(_MEANINGS))
        if composition.held_out is held_out:
            return composition


def phrases(language: str, count: int, seed: int, *, held_out: bool) -> list[Phrase]:
    """`count` phrases of different compositions in one language.

    Raises:
        KeyError: no patterns are written in that language.
    """
    found: dict[Composition, Phrase] = {}
    for composition in compositions(seed, held_out=held_out):
        if len(found) == count:
            break
        found[composition] = composition.phrase(language)
    return list(found.values())


def lexicon(language: str) -> Iterator[Phrase]:
    """The names alone, as a dictionary lists them: countries, languages, currencies, days of the week, months.

    No composition, so never held out: this is where a model may learn the words.
    """
    locale, english = Locale.parse(WORDINGS[language].locale), Locale.parse("en")
    for kind, entries in values.NAMES.items():
        show: Callable[[Any, Locale], str] = values.KINDS[kind].show
        for entry in entries:
            yield Phrase(show(entry, locale), language, show(entry, english).translate(_SPACES))


def _draw(rng: random.Random, meaning: str) -> Composition:
    slots: dict[str, Any] = {}
    for name in _slot_names(_ENGLISH[meaning]):
        kind = values.KINDS[_kind(name)]
        value = kind.draw(rng)
        while value in slots.values():  # two countries of one journey differ
            value = kind.draw(rng)
        slots[name] = value
    if isinstance(slots.get("date2"), datetime.date):
        slots["date"], slots["date2"] = sorted([slots["date"], slots["date2"]])
    return Composition(meaning, tuple(slots.items()))


def _slot_names(pattern: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(pattern) if name]


def _kind(name: str) -> str:
    return name.rstrip(string.digits)
