"""Questions in other languages over an English paragraph, as MLQA has them.

The paragraph has three notes of one meaning with different words in them, each by another person; the question quotes
one of the notes in its own language and asks who wrote it. Anyone who cannot read the language finds the writer once in
three times.
"""

from __future__ import annotations

import random
from typing import Final

from demo_world.phrases import WORDINGS, Composition, draw_composition
from demo_world.suites.drawing import Item
from demo_world.texts.foreign import TOOL
from demo_world.texts.patterns import Slots

_MEANINGS: Final = ("country", "journey", "visited", "spoken", "available", "guide", "course", "currencies")
"""What is said in words, not in numbers, which every language writes alike."""
_NOTES: Final = 3


def language_question(rng: random.Random, *, language: str) -> Item:
    """A question in ``language``, a FLORES-200 code of :data:`demo_world.phrases.LANGUAGES`."""
    notes = _notes(rng, rng.choice(_MEANINGS))
    slots = Slots(rng)
    people = [slots[f"person{number}"] for number in range(2, 2 + _NOTES)]
    paragraph = " ".join(
        f'{person} wrote: "{note.phrase(language).english}"' for person, note in zip(people, notes, strict=True)
    )
    asked = rng.randrange(_NOTES)
    foreign = notes[asked].phrase(language).text
    return Item(
        WORDINGS[language].who_wrote.format(foreign=foreign),
        (people[asked],),
        f'{paragraph} "{foreign}" was written by',
        context=paragraph,
        calls=((TOOL, foreign),),
        kind=language,
    )


def _notes(rng: random.Random, meaning: str) -> list[Composition]:
    found: dict[Composition, None] = {}
    while len(found) < _NOTES:
        found[draw_composition(rng, held_out=True, meaning=meaning)] = None
    return list(found)
