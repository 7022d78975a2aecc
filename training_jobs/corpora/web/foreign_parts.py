"""Which paragraphs are worth a translation: those with another language between English (appendix A of the paper)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from training_jobs.corpora.web.language_id import Languages
from training_jobs.corpora.web.tokens import TokenSpans
from training_jobs.records import Document

CHUNK_TOKENS: Final = 10
CONFIDENCE: Final = 0.8

KEPT: Final = "another language between English"
ONLY_ENGLISH: Final = "only English"
NOT_BETWEEN: Final = "another language, but not between English"
UNSURE: Final = "another language, but the classifier is not sure"
NO_WORDS: Final = "only numbers and special symbols"

# Of a text whose paragraphs fall for several reasons the first of these is reported.
_ORDER: Final = (KEPT, NOT_BETWEEN, UNSURE, ONLY_ENGLISH, NO_WORDS)


def foreign_paragraphs(
    document: Document, *, spans: TokenSpans, languages: Languages
) -> tuple[list[Document], str, Counter[str]]:
    """The document's paragraphs (lines) that are kept, why, and all its paragraphs by reason.

    A document of one paragraph stays what it is; of several, each kept one becomes a document of its own, with ``#N``
    behind the id (paragraphs are counted from 1, empty lines left out).
    """
    paragraphs = [line for line in document.text.split("\n") if line.strip()]
    reasons: Counter[str] = Counter()
    kept = []
    for number, paragraph in enumerate(paragraphs, start=1):
        reason = judge_paragraph(paragraph, spans=spans, languages=languages)
        reasons[reason] += 1
        if reason == KEPT:
            whole = len(paragraphs) == 1
            kept.append(document if whole else replace(document, id=f"{document.id}#{number}", text=paragraph))
    return kept, next((reason for reason in _ORDER if reasons[reason]), NO_WORDS), reasons


def judge_paragraph(paragraph: str, *, spans: TokenSpans, languages: Languages) -> str:
    """``KEPT`` or the reason why not.

    The paragraph is cut into chunks of 10 tokens (a shorter rest belongs to the last). One must be in another language
    than English with a confidence of more than 0.8, and some chunk before it and some behind it must be English. A
    chunk of numbers and special symbols alone counts for nothing.
    """
    chunks = [chunk for chunk in _chunks(paragraph, spans) if any(character.isalpha() for character in chunk)]
    if not chunks:
        return NO_WORDS
    named = [languages(chunk) for chunk in chunks]
    english = [number for number, (is_english, _) in enumerate(named) if is_english]
    other = [number for number, (is_english, _) in enumerate(named) if not is_english]
    sure = [number for number in other if named[number][1] > CONFIDENCE]
    if not other:
        return ONLY_ENGLISH
    if not sure:
        return UNSURE
    if english and any(english[0] < number < english[-1] for number in sure):
        return KEPT
    return NOT_BETWEEN


def _chunks(paragraph: str, spans: TokenSpans) -> list[str]:
    tokens = spans(paragraph)
    starts = list(range(0, len(tokens), CHUNK_TOKENS))
    if len(starts) > 1 and len(tokens) - starts[-1] < CHUNK_TOKENS:
        starts.pop()
    ends = [*starts[1:], len(tokens)]
    return [paragraph[tokens[start][0] : tokens[end - 1][1]] for start, end in zip(starts, ends, strict=True)]
