"""The sentences of found passages that are nearest to a question, for a reader that reads sentences.

Eight such sentences out of twenty passages say the answer more often than the best five passages do, in as many tokens
(decision 031).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from services.question_answering.passages import PagePassage
from services.sentences import split_sentences

_TABLE: Final = """
a about also am an and any are as at be been being but by called can could did do does for from had has have he her him
his how i if in into is it its many may me more most much my name no not of off on one or our please she should so some
such tell than that the their them then there these they this those to us was we were what when where which while who
whom whose why will with would you your
"""
_FUNCTION_WORDS: Final = frozenset(_TABLE.split())
_WORD: Final = re.compile(r"\w+")
_STEM: Final = 5
_OF_HEADING: Final = 0.8
"""What a word in the heading counts, against one in the sentence."""
_OF_RANK: Final = 0.1
"""What each place of its passage behind the first costs a sentence, in nats."""
_LONGEST: Final = 60
"""In words; what is longer, a list mostly, is cut into pieces."""


def word_keys(text: str) -> frozenset[str]:
    """The words of ``text`` by their first letters, function words left out: ``invented`` and ``invention`` are one."""
    return frozenset(stem(word) for word in _WORD.findall(text) if not is_function_word(word))


def is_function_word(word: str) -> bool:
    """Whether ``word`` says nothing by itself."""
    return word.casefold() in _FUNCTION_WORDS


def stem(word: str) -> str:
    """The first letters of a word, in lower case."""
    return word.casefold()[:_STEM]


def nearest_sentences(question: str, passages: Sequence[PagePassage], most: int) -> list[PagePassage]:
    """The ``most`` sentences that have most of the question's words, each as a passage of its own, nearest first.

    A word counts the more the fewer of all the sentences have it. ``passages`` are given best first.
    """
    asked = word_keys(question)
    cut = [(rank, replace(one, text=text)) for rank, one in enumerate(passages) for text in _sentences(one.text)]
    said = [(asked & word_keys(one.text), asked & word_keys(one.heading)) for _, one in cut]
    counts = Counter(word for sentence, heading in said for word in sentence | heading)
    rarity = {word: math.log(1 + len(cut) / count) for word, count in counts.items()}

    def score(number: int) -> float:
        sentence, heading = said[number]
        of_heading = sum(rarity[word] for word in heading - sentence)
        return sum(rarity[word] for word in sentence) + _OF_HEADING * of_heading - _OF_RANK * cut[number][0]

    best = sorted(range(len(cut)), key=score, reverse=True)[:most]
    return [cut[number][1] for number in best]


def _sentences(text: str) -> Iterator[str]:
    for sentence in split_sentences(text):
        words = sentence.split()
        if len(words) <= _LONGEST:
            yield sentence
        else:
            yield from (" ".join(words[start : start + _LONGEST]) for start in range(0, len(words), _LONGEST))
