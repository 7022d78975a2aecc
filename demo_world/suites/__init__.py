"""Held-out questions with known answers: what models of the demo world are measured on.

``tools`` asks for each tool; the other modules have the forms of the paper's benchmarks (:data:`SUITES`). Entities,
numbers, days and compositions are held out everywhere; a suite's second half is in phrasings that are held out too.
"""

from demo_world.suites.drawing import Item
from demo_world.suites.making import SUITES, held_out_texts, items
from demo_world.suites.tools import SPLITS, TOOLS, questions

__all__ = [
    "SPLITS",
    "SUITES",
    "TOOLS",
    "Item",
    "held_out_texts",
    "items",
    "questions",
]
