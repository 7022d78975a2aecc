"""How far a passage is about what was asked: what a small reader, sure of every answer, cannot say itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from services.question_answering.passages import PagePassage

_WORD: Final = re.compile(r"[^\W_]+")
_TABLE: Final = """
a about also am an and any are as at be been being but by called can could did do does for from had has have he her him
his how i if in into is it its many may me more most much my name no not of off on one or our please she should so some
such tell than that the their them then there these they this those to us was we were what when where which while who
whom whose why will with would you your
"""
FUNCTION_WORDS: Final = frozenset(_TABLE.split())


def agreement(question: str, passages: Iterable[PagePassage]) -> float:
    """The share of the question's words, function words left out, that the best of ``passages`` says: 0 to 1.

    A question of function words alone asks for nothing that a passage could agree with: 0.
    """
    asked = [word for word in _words(question) if word not in FUNCTION_WORDS]
    said = [frozenset(_words(f"{passage.heading} {passage.text}")) for passage in passages]
    return max((sum(word in words for word in asked) / len(asked) for words in said if asked), default=0.0)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
