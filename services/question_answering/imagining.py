"""Examples in worlds that are not: things with other names, passages with other answers.

The encyclopedia has 220 countries, and a training run asks about each a thousand times. Models that meet only what is
true learn by heart: a reader the areas and capitals, a retriever which vector belongs to which name. In worlds of their
own, each met once, what is left to learn is to read the passage and to compare names.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from typing import Final

from services.question_answering.passages import PagePassage

_DIGIT: Final = re.compile(r"\d")
_PREFIX: Final = re.compile(r"^(?:Public holidays in )?(?:the )?")
_QUALIFIER: Final = re.compile(r": |, | \(")
_SHORTEST: Final = 3
"""A name of fewer characters is in other words by chance."""


@dataclass(frozen=True, slots=True)
class Example:
    """A question about the thing called ``name``, with the passage that holds its answer, and others that do not."""

    question: str
    answer: str
    relation: str
    name: str
    gold: PagePassage
    distractors: tuple[PagePassage, ...]


def name_in(title: str) -> str:
    """The name in a page's title: ``Springfield`` in ``Springfield, Illinois``, ``Peru`` in ``Public holidays in
    Peru``."""
    return _QUALIFIER.split(_PREFIX.sub("", title))[0]


def says(text: str, answer: str) -> bool:
    """Whether ``text`` says ``answer``: as whole words or a whole number, not as a part of others."""
    return _found(answer).search(text) is not None


def spliced(one: str, other: str) -> str:
    """The first half of ``one`` with the second half of ``other``."""
    return one[: (len(one) + 1) // 2].rstrip() + other[len(other) // 2 :].lower().lstrip()


def renamed(example: Example, other: str) -> Example:
    """``example`` with its thing called ``other`` everywhere; unchanged where that would touch the answer."""
    name = example.name
    if len(name) < _SHORTEST or name not in example.question or name in example.answer or example.answer in name:
        return example
    return replace(
        example,
        question=example.question.replace(name, other),
        name=other,
        gold=called(example.gold, name, other),
        distractors=tuple(called(passage, name, other) for passage in example.distractors),
    )


def called(passage: PagePassage, name: str, other: str) -> PagePassage:
    """``passage`` with ``name`` replaced in its heading and its text."""
    found = re.compile(rf"\b{re.escape(name)}\b")
    return replace(
        passage,
        heading=found.sub(lambda _: other, passage.heading),
        text=found.sub(lambda _: other, passage.text),
    )


def answered(example: Example, answer: str) -> Example:
    """``example`` with ``answer`` where its passage says the true one."""
    gold = replace(example.gold, text=_found(example.answer).sub(lambda _: answer, example.gold.text))
    return replace(example, answer=answer, gold=gold)


def other_digits(number: str, rng: random.Random) -> str:
    """``number`` with other digits, as many as before."""
    return _DIGIT.sub(lambda found: str(rng.randint(int(found.start() == 0), 9)), number)


def _found(answer: str) -> re.Pattern[str]:
    """Where ``answer`` stands by itself: whole words, and whole numbers."""
    before = r"(?<![\w])(?<!\d[.,])" if answer[:1].isalnum() else ""
    after = r"(?![\w]|[.,]\d)" if answer[-1:].isalnum() else ""
    return re.compile(before + re.escape(answer) + after)
