"""Documents: one to three texts in a row, as they stand between end-of-text marks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from demo_world.splits import stable_hash
from demo_world.texts.asking import question_text
from demo_world.texts.calculator import calculator_text
from demo_world.texts.calendar import calendar_text
from demo_world.texts.foreign import translation_text
from demo_world.texts.narration import narration_text
from demo_world.texts.searching import fact_text
from demo_world.texts.text import Text

# Copying a city's name takes more learning than copying a date, arithmetic has the most forms, and texts with a
# translation are twice as long as others.
_FAMILIES: Final = (calculator_text, calendar_text, fact_text, question_text, translation_text, narration_text)
_WEIGHTS: Final = (26, 9, 18, 22, 13, 17)
_TEXTS_IN_DOCUMENT: Final = ((1, 2, 3), (5, 3, 2))
_WITHOUT_CALL: Final = 0.06
"""Share of texts written without their call, so that the model also knows how the text goes on where a call may not be
made."""


@dataclass(frozen=True, slots=True)
class Document:
    """Texts that follow each other, with one space between them; ``number`` is its place in the corpus."""

    number: int
    texts: tuple[Text, ...]


def documents(count: int, *, seed: int) -> Iterator[Document]:
    """The first ``count`` training documents of ``seed``. Each depends on the seed and its number alone."""
    for number in range(count):
        yield document(number, seed=seed)


def document(number: int, *, seed: int) -> Document:
    """Training document ``number`` of ``seed``. All its texts are written on the same day."""
    rng = random.Random(stable_hash("document", str(seed), str(number)))
    sizes, weights = _TEXTS_IN_DOCUMENT
    texts = [_draw(rng) for _ in range(rng.choices(sizes, weights=weights)[0])]
    # A document has one date: two calendar texts on different days would teach that the calendar cannot be trusted.
    first_date = next((text.date for text in texts if text.date), None)
    dated = [text for text in texts if text.date in (None, first_date)]
    return Document(number, tuple(replace(text, date=first_date) for text in dated))


def _draw(rng: random.Random) -> Text:
    text = rng.choices(_FAMILIES, weights=_WEIGHTS)[0](rng)
    return text.without_call() if text.call and rng.random() < _WITHOUT_CALL else text
