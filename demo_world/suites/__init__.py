"""Held-out questions with known answers: what models of the demo world are measured on.

``tools`` asks for each tool; the other modules have the forms of the paper's benchmarks (:data:`SUITES`). Entities,
numbers, days and compositions are held out everywhere; a suite's second half is in phrasings that are held out too.
"""

from demo_world.suites.item import Item
from demo_world.suites.making import COUNT, SUITES, held_out_texts, items
from demo_world.suites.tools import QUESTIONS_PER_TOOL, SPLITS, TOOLS, Question, Split, questions

__all__ = [
    "COUNT",
    "QUESTIONS_PER_TOOL",
    "SPLITS",
    "SUITES",
    "TOOLS",
    "Item",
    "Question",
    "Split",
    "held_out_texts",
    "items",
    "questions",
]
