"""Texts that show where tools help: project-written sentence patterns with generated facts and numbers.

:func:`documents` is the training side: nothing that is held out (numbers, dates, cities, countries, phrasings)
stands in it. :func:`calculator_text`, :func:`calendar_text`, :func:`fact_text`, :func:`question_text` and
:func:`translation_text` give single texts from either side of each split; :mod:`demo_world.suites` makes the
held-out suites of them.
"""

from demo_world.texts.asking import question_text
from demo_world.texts.calculator import calculator_text
from demo_world.texts.calendar import calendar_text
from demo_world.texts.documents import Document, documents
from demo_world.texts.foreign import translation_text
from demo_world.texts.narration import narration_text
from demo_world.texts.searching import fact_text
from demo_world.texts.text import CallSlot, Text

__all__ = [
    "CallSlot",
    "Document",
    "Text",
    "calculator_text",
    "calendar_text",
    "documents",
    "fact_text",
    "narration_text",
    "question_text",
    "translation_text",
]
