"""Long texts as several documents, so that a model with a short window reads all of them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from training_jobs.corpora.web.tokens import Span, TokenSpans
from training_jobs.records import Document

_SENTENCE_END: Final = re.compile(r"[.!?。！？][\"'”’)\]]*(?=\s)|[。！？]")


def cut(document: Document, max_tokens: int, spans: TokenSpans) -> Iterator[Document]:
    """The document in pieces of at most so many tokens, each a document with ``~N`` behind the id, counted from 1.

    It is cut at the last end of a line that fits, else of a sentence, else of a token that ends no character's middle;
    white space at a cut is left out. A text that fits stays what it is.
    """
    tokens = spans(document.text)
    if len(tokens) <= max_tokens:
        yield document
        return
    for number, (start, end) in enumerate(_pieces(document.text, tokens, max_tokens), start=1):
        yield replace(document, id=f"{document.id}~{number}", text=document.text[start:end])


def _pieces(text: str, tokens: Sequence[Span], max_tokens: int) -> Iterator[Span]:
    starts = [start for start, _ in tokens]
    lines = [match.end() for match in re.finditer(r"\n", text)]
    sentences = [match.end() for match in _SENTENCE_END.finditer(text)]
    begin = 0
    while (first := bisect_left(starts, begin)) < len(tokens):
        last = first + max_tokens
        reach = len(text) if last >= len(tokens) else tokens[last][0]
        end = reach
        if reach < len(text):
            end = _last_before(lines, begin, reach) or _last_before(sentences, begin, reach) or max(reach, begin + 1)
        piece = text[begin:end]
        if piece.strip():
            yield end - len(piece.lstrip()), begin + len(piece.rstrip())
        begin = end


def _last_before(ends: Sequence[int], begin: int, reach: int) -> int | None:
    """The last of the sorted ``ends`` behind ``begin`` and not behind ``reach``."""
    at = bisect_right(ends, reach) - 1
    return ends[at] if at >= 0 and ends[at] > begin else None
