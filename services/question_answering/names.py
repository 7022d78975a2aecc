"""Whether found passages say what a question names: the best there are may be of other things with like names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from services.question_answering.nearest import is_function_word, word_keys
from services.question_answering.passages import PagePassage
from services.sentences import without_accents

_WORD: Final = re.compile(r"\w+")
_INSIDE: Final = " .'’-"
"""What may stand between the words of one name."""


def unknown_name(question: str, passages: Sequence[PagePassage]) -> str | None:
    """The first name in ``question``, where no passage has one of its names; ``None`` where one does, and of a question
    without a name.

    A name is what begins with capitals behind the question's first word, and is there if its first and last word are:
    *Andy Cox* is not where Andy Warhol and Courteney Cox have pages. Words are compared without accents, by their
    first letters.
    """
    names = _names(question)
    ends = [_keys(f"{words[0]} {words[-1]}") for words in map(str.split, names)]
    said = (_keys(f"{one.heading} {one.text}") for one in passages)
    if not names or any(name <= passage for passage in said for name in ends):
        return None
    return names[0]


def _names(question: str) -> list[str]:
    """Words with capitals, side by side; none of a question written in capitals alone. An initial is left out."""
    words = list(_WORD.finditer(question))
    if not any(word[0][0].islower() for word in words):
        return []
    names: list[str] = []
    end = 0
    for word in words[1:]:
        if word[0][0].isupper() and len(word[0]) > 1 and not is_function_word(word[0]):
            together = bool(names) and not question[end : word.start()].strip(_INSIDE)
            names[len(names) - together :] = [" ".join([*names[-1:], word[0]]) if together else word[0]]
            end = word.end()
    return names


def _keys(text: str) -> frozenset[str]:
    return word_keys(without_accents(text))
