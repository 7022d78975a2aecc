"""Texts for perplexity: WikiText (Merity et al., 2017) and documents of CCNet (Wenzek et al., 2020)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training_jobs.corpora.web.readers import CorpusError, read
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.readers.files import text_of

_ARTICLE: Final = re.compile(r"^ ?= [^=\n]+ = ?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text whose perplexity is measured."""

    id: str
    text: str


def read_wikitext(paths: Sequence[Path]) -> tuple[PlainText, ...]:
    """``wiki.test.raw`` or ``wiki.test.tokens``: the articles as they are there, with the line of their title."""
    found = []
    for path in paths:
        text = text_of(path)
        starts = [match.start() for match in _ARTICLE.finditer(text)]
        if not starts:
            raise SuiteError(f"{path}: holds no article (a line ' = Title = '); is this the file of another suite?")
        for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(text)], strict=True), start=1):
            found.append(PlainText(f"{path.name}-{number}", text[start:end].strip()))
    return tuple(found)


def read_ccnet(paths: Sequence[Path]) -> tuple[PlainText, ...]:
    """CCNet's JSON lines or any other texts that the corpus job reads; empty ones are left out."""
    try:
        documents = [document.document for path in paths for document in read(path)]
    except CorpusError as error:
        raise SuiteError(str(error)) from error
    found = tuple(PlainText(document.id, document.text.strip()) for document in documents if document.text.strip())
    if not found:
        raise SuiteError(f"{paths[0]}: holds no text; fetch it again")
    return found
