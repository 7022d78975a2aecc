"""A text made ready for the model: cleaned, its language named, cut into sentences and those into segments."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from services.base import ToolFailure
from services.translation.flores import ENGLISH, LANGUAGES
from services.translation.labels import parse_language
from services.translation.language_id import Detection, LanguageIdentifier
from services.translation.scripts import has_letters, main_script
from services.translation.sentences import Sentence, join_sentences, split_sentences
from services.translation.translator import Segment, Translated, Translator

# Marks that steer a display or hide: they say nothing, and a tokenizer knows few of them. The joiners U+200C and U+200D
# stay, for they spell words in Persian and in the scripts of India.
_INVISIBLE: Final = frozenset("\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff") | frozenset(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)

_FEW_WORDS: Final = 2
"""So few may look like a language that the model does not know."""
_LIKELY: Final = 3
"""So many languages a text is translated from, where the classifier is unsure."""


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in English; ``source`` is the language it was in (None: nothing to translate), ``confidence`` how sure
    the classifier was (None: the caller said so, or there was nothing to name), ``score`` how sure the model was of
    its least sure sentence (None: it was not asked)."""

    text: str
    source: str | None
    confidence: float | None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text that waits for the model: its sentences, and each one's segments in each language that it may be in, with
    how sure the classifier is of that, as `Translation` has it."""

    sentences: list[Sentence]
    parts: dict[str, list[list[Segment]]]
    confidences: Mapping[str, float | None]

    @property
    def segments(self) -> list[Segment]:
        """All of them, in order."""
        return [segment for language in self.parts.values() for parts in language for segment in parts]

    def translated(self, done: Iterator[Translated]) -> Translation:
        """The whole text in English, from the language that classifier and model together are surest of; takes as many
        from ``done`` as there are `segments`."""
        return max([self._from(language, done) for language in self.parts], key=_sureness)

    def _from(self, language: str, done: Iterator[Translated]) -> Translation:
        made = [[next(done) for _ in parts] for parts in self.parts[language]]
        text = join_sentences(self.sentences, [" ".join(one.text for one in parts) for parts in made])
        score = min((one.score for parts in made for one in parts), default=None)
        return Translation(text, language, self.confidences[language], score)


@dataclass(frozen=True, slots=True)
class Preparer:
    """Makes texts ready for one model, with one classifier; thread-safe. Below ``min_confidence`` the classifier is not
    trusted, and where the model may decline (``declines``) it translates from each of the likeliest languages."""

    identifier: LanguageIdentifier
    translator: Translator
    min_confidence: float
    declines: bool

    def prepare(self, text: str, source: str | None = None) -> Prepared | Translation:
        """``text`` made ready, or its translation where that is the text itself.

        Args:
            text: in one language; where it holds several, the main one is taken for all of it.
            source: its language as a FLORES-200 or ISO 639 code; by default the classifier names it.

        Raises:
            ToolFailure: `empty`, `unknown_language`, `low_confidence`, `unsupported_language`, `unknown_source`.
        """
        cleaned = _clean_or_fail(text)
        if not has_letters(cleaned):
            return Translation(text, None, None)
        languages = self._detected(cleaned) if source is None else {_given(cleaned, source): None}
        language, confidence = next(iter(languages.items()))
        if language == ENGLISH:
            return Translation(text, language, confidence)
        if language not in self.translator.manifest.source_languages:
            raise ToolFailure(
                "unsupported_language", f"this model does not translate from {_called(language)}; see /languages"
            )
        sentences = split_sentences(cleaned)
        parts = {one: [self.translator.segments(sentence.text, one) for sentence in sentences] for one in languages}
        return Prepared(sentences, parts, languages)

    def detect(self, text: str) -> Detection:
        """The language of ``text``, however unsure.

        Raises:
            ToolFailure: `empty`, or `unknown_language` where it has no letter.
        """
        cleaned = _clean_or_fail(text)
        if not has_letters(cleaned):
            raise ToolFailure("unknown_language", "the text has no letter that a language could be recognised by")
        return self.identifier.detect(cleaned)

    def _detected(self, text: str) -> Mapping[str, float | None]:
        """The language, or those that it may be."""
        found = self.identifier.detect(text)
        known = self.translator.manifest.source_languages
        few = len(text.split()) <= _FEW_WORDS and found.language not in {*known, ENGLISH}
        if found.confidence < self.min_confidence or (few and self.declines):
            # A few words look like many languages; what matters is which of those that can be translated.
            candidates = self.identifier.candidates(text, {*known, ENGLISH})
            likely = {one.language: one.confidence for one in candidates if one.language in known}
            if candidates and candidates[0].confidence >= self.min_confidence:
                found = candidates[0]
            elif likely and self.declines:
                return dict(islice(likely.items(), _LIKELY))
        remedy = "name it in 'source' if you know it"
        if found.language is None:
            message = f"the text's language looks like {found.label!r}, which cannot be translated; {remedy}"
            raise ToolFailure("unknown_language", message)
        if found.confidence < self.min_confidence:
            message = (
                f"the text's language looks like {_called(found.language)}, but with a confidence of only "
                f"{found.confidence:.2f} (at least {self.min_confidence:.2f} is asked for); {remedy}"
            )
            raise ToolFailure("low_confidence", message)
        return {found.language: found.confidence}


def _sureness(made: Translation) -> float:
    return (made.confidence or 1.0) * (made.score or 1.0)


def _given(text: str, source: str) -> str:
    language = parse_language(source, main_script(text))
    if language is None:
        message = f"{source!r} is no language of FLORES-200; give a code such as 'deu_Latn' or 'de', or none"
        raise ToolFailure("unknown_source", message)
    return language


def _clean_or_fail(text: str) -> str:
    """`text` without control characters and invisible marks; line breaks and tabs stay as white space."""
    cleaned = "".join(
        " " if unicodedata.category(character) == "Cc" and character != "\n" else character
        for character in text.replace("\r\n", "\n")
        if character not in _INVISIBLE
    ).strip()
    if not cleaned:
        raise ToolFailure("empty", "there is nothing to translate: the text is empty")
    return cleaned


def _called(language: str) -> str:
    return f"{LANGUAGES[language]} ({language})"
