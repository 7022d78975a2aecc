"""A passage with its question as the reader is shown it: tokens, and marks on words of the passage that the question
has too.

A reader of ten million weights does not learn by itself, in hours of training, to look for the question's words in a
passage; told which they are, it learns to read between them (the exact match feature of Chen et al., 2017).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from tokenizers import Encoding, Tokenizer

from services.question_answering.formats import PAD, gap_mark, prompt, reader_text
from services.question_answering.nearest import stem, word_keys
from services.question_answering.padding import encodings
from services.question_answering.passages import PagePassage

MARK: Final = gap_mark(1)
"""The token whose embedding marks a word."""
_WORD: Final = re.compile(r"\w+")
_UNDIVIDED: Final = re.compile(r"\w+(?:[.,:]\d+)*")
"""A word, or a number with its separators: no answer begins or ends inside."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One text for the encoder: its tokens' ``ids``, and ``marks``, `MARK`'s id on a marked word and the id of padding
    elsewhere. ``starts``: the tokens at which the answer begins in the passage, where that was asked for. ``inside``:
    the tokens before which a word or number has begun and not ended."""

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
    mark, pad = (int(tokenizer.token_to_id(token) or 0) for token in (MARK, PAD))
    shown = []
    for text, encoding in zip(texts, encodings(tokenizer, texts, max_tokens), strict=True):
        marks = None
        if marked:
            again = (found.span() for found in _WORD.finditer(text, len(asked)) if stem(found[0]) in keys)
            marks = [pad] * len(encoding.ids)
            for token in (one for span in again for one in _tokens(encoding, *span)):
                marks[token] = mark
        starts = _starts(encoding, text, answer, len(asked)) if answer else ()
        shown.append(Shown(encoding.ids, marks, tuple(starts), frozenset(_inside(encoding, text, len(asked)))))
    return shown


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
