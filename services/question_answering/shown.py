"""A passage with its question as the reader is shown it: tokens, and marks on words of the passage: those that the
question has too, and of the others numbers and names.

A reader of ten million weights does not learn by itself, in hours of training, to look for the question's words in a
passage, nor what could answer `when` and `who`; given these words, it learns to read between them (the exact
match and token features of Chen et al., 2017).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from tokenizers import Encoding, Tokenizer

from services.question_answering.formats import PAD, gap_mark, prompt, reader_text
from services.question_answering.nearest import is_function_word, stem, word_keys
from services.question_answering.padding import encodings
from services.question_answering.passages import PagePassage

ASKED: Final = gap_mark(1)
"""The token whose embedding marks a word of the question."""
NUMBER: Final = gap_mark(2)
"""The same of numbers, in digits or words."""
NAME: Final = gap_mark(3)
"""The same of words that begin with a capital letter, but for function words."""
_WORD: Final = re.compile(r"\w+")
_NUMBERS: Final = frozenset(
    {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "hundred",
     "thousand", "million"}
)  # fmt: skip
_UNDIVIDED: Final = re.compile(r"\w+(?:[.,:]\d+)*")
"""A word, or a number with its separators: no answer begins or ends inside."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One text for the encoder: its tokens' ``ids``, and ``marks``, the id of `ASKED`, `NUMBER` or `NAME` on a marked
    word and of padding elsewhere. ``starts``: the tokens at which the answer begins in the passage, where that was
    asked for. ``inside``: the tokens before which a word or number has begun and not ended."""

    ids: list[int]
    marks: list[int] | None = None
    starts: tuple[int, ...] = ()
    inside: frozenset[int] = frozenset()


def show(
    tokenizer: Tokenizer,
    question: str,
    passages: Sequence[PagePassage],
    max_tokens: int,
    *,
    marked: bool,
    answer: str = "",
) -> list[Shown]:
    """Each of ``passages`` (or one empty passage, where there are none) with ``question``, cut at ``max_tokens``; with
    marks if they shall be ``marked``, with the places of ``answer`` if there is one."""
    asked = prompt(question)
    texts = [reader_text(asked, passage) for passage in passages or (PagePassage("", "", ""),)]
    keys = word_keys(question)
    pad = int(tokenizer.token_to_id(PAD) or 0)
    shown = []
    for text, encoding in zip(texts, encodings(tokenizer, texts, max_tokens), strict=True):
        marks = None
        if marked:
            marks = [pad] * len(encoding.ids)
            for found in _WORD.finditer(text, len(asked)):
                if mark := _mark(found[0], keys):
                    for token in _tokens(encoding, *found.span()):
                        marks[token] = int(tokenizer.token_to_id(mark) or 0)
        starts = _starts(encoding, text, answer, len(asked)) if answer else ()
        shown.append(Shown(encoding.ids, marks, tuple(starts), frozenset(_inside(encoding, text, len(asked)))))
    return shown


def _mark(word: str, keys: Collection[str]) -> str:
    """What marks ``word``, if anything does; the question has the words ``keys``."""
    if stem(word) in keys:
        return ASKED
    if word[0].isdigit() or word in _NUMBERS:
        return NUMBER
    return NAME if word[0].isupper() and not is_function_word(word) else ""


def _starts(encoding: Encoding, text: str, answer: str, begin: int) -> Iterator[int]:
    """The first token of each place where ``text`` says ``answer``, from character ``begin`` on."""
    for found in re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)").finditer(text, begin):
        yield from _tokens(encoding, found.start(), found.start() + 1)


def _inside(encoding: Encoding, text: str, begin: int) -> Iterator[int]:
    """The tokens that go on with a word or number, from character ``begin`` on."""
    for found in _UNDIVIDED.finditer(text, begin):
        yield from islice(_tokens(encoding, *found.span()), 1, None)


def _tokens(encoding: Encoding, begin: int, end: int) -> Iterator[int]:
    """The tokens that have a character from ``begin`` to ``end``; none where the text has been cut before."""
    first, last = encoding.char_to_token(begin), encoding.char_to_token(end - 1)
    if first is not None:
        yield from range(first, (first if last is None else last) + 1)
