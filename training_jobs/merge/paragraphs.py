"""Paragraphs that are documents of their own (see `corpora.web.foreign_parts`), and where they came from."""

from __future__ import annotations

import re
from typing import Final

_PARAGRAPH: Final = re.compile(r"(.+)#([1-9]\d*)", re.DOTALL)


def paragraph_of(id_: str) -> tuple[str, int] | None:
    """The document's id and the paragraph's number, if ``id_`` has the form of a paragraph's, ``ID#N``."""
    found = _PARAGRAPH.fullmatch(id_)
    return (found[1], int(found[2])) if found else None


def paragraph_start(text: str, number: int, paragraph: str) -> int | None:
    """Where the ``number``-th paragraph of ``text`` begins, if it is ``paragraph``; empty lines do not count."""
    at = counted = 0
    for line in text.split("\n"):
        counted += bool(line.strip())
        if counted == number:
            return at if line == paragraph else None
        at += len(line) + 1
    return None
