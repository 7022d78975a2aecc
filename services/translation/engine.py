"""Translation as an engine: names the language, cuts into sentences, translates those of concurrent calls together."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.base import Call, CannotStart, NotReady, ToolFailure, fingerprint
from services.translation.batching import Batcher
from services.translation.flores import ENGLISH, LANGUAGES
from services.translation.labels import parse_language
from services.translation.language_id import Detection, LanguageIdentifier
from services.translation.model_folder import UnusableModelError, file_digest
from services.translation.scripts import has_letters, main_script
from services.translation.sentences import Sentence, join_sentences, split_sentences
from services.translation.translator import Segment, Translator

logger = logging.getLogger(__name__)

DEFAULT_MIN_CONFIDENCE: Final = 0.5
DEFAULT_BATCH: Final = 32
DEFAULT_BATCH_WAIT_S: Final = 0.004

# Marks that steer a display or hide: they say nothing, and a tokenizer knows few of them. The joiners U+200C and U+200D
# stay, for they spell words in Persian and in the scripts of India.
_INVISIBLE: Final = frozenset("\u00ad\u061c\u200b\u200e\u200f\u2060\ufeff") | frozenset(
    map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
)


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in English; ``source`` is the language it was in (None: nothing to translate), ``confidence`` how sure
    the classifier was (None: the caller said so, or there was nothing to name)."""

    text: str
    source: str | None
    confidence: float | None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A text made ready: its sentences and each one's segments."""

    sentences: list[Sentence]
    segments: list[list[Segment]]


class TranslationEngine:
    """Translates into English.

    Args:
        load_translator: loads the model; called in a thread when the engine starts.
        language_id: a fastText file.
        min_confidence: below this the classifier's answer is not trusted.
        max_batch: segments in one batch.
        batch_wait_s: seconds that a segment waits for company.
    """

    def __init__(
        self,
        load_translator: Callable[[], Translator],
        language_id: Path,
        *,
        min_confidence: float = DEFAULT_MIN_CONFIDENCE,
        max_batch: int = DEFAULT_BATCH,
        batch_wait_s: float = DEFAULT_BATCH_WAIT_S,
    ) -> None:
        self._load_translator = load_translator
        self._language_id = language_id
        self._min_confidence = min_confidence
        self._max_batch = max_batch
        self._batch_wait_s = batch_wait_s
        self._loaded: _Loaded | None = None
        self.data_version = ""
        """See `services.base.engine.HasData`: both models and what else a translation depends on."""

    async def start(self) -> None:
        """Loads both models.

        Raises:
            CannotStart: a file is missing, torn or of another kind.
        """
        try:
            identifier = await asyncio.to_thread(LanguageIdentifier, self._language_id)
            translator = await asyncio.to_thread(self._load_translator)
        except UnusableModelError as error:
            raise CannotStart(str(error)) from error
        classifier = await asyncio.to_thread(file_digest, self._language_id)
        self.data_version = fingerprint(translator.version, classifier, self._min_confidence)
        batcher = Batcher(translator.translate, max_batch=self._max_batch, max_wait_s=self._batch_wait_s)
        batcher.start()
        self._loaded = _Loaded(identifier, translator, batcher, frozenset(translator.manifest.source_languages))
        logger.info("translates from %d languages", len(self._loaded.languages))

    async def stop(self) -> None:
        """Finishes the batch at work."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.batcher.stop()

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """Each call's input in English, or why not (the codes are in the service's README)."""
        return list(await asyncio.gather(*(self._answer_one(call.input) for call in calls)))

    async def translate(self, text: str, source: str | None = None) -> Translation:
        """`text` in English. English, and text without a letter, come back as they are.

        Args:
            text: in one language; where it holds several, the main one is taken for all of it.
            source: its language as a FLORES-200 or ISO 639 code; by default the classifier names it.

        Raises:
            ToolFailure: `empty`, `unknown_language`, `low_confidence`, `unsupported_language`, `unknown_source`.
            NotReady: the models are not loaded.
        """
        loaded = self._ready()
        cleaned = _clean_or_fail(text)
        if not has_letters(cleaned):
            return Translation(text, None, None)
        language, confidence = await self._language_of(loaded, cleaned, source)
        if language == ENGLISH:
            return Translation(text, language, confidence)
        if language not in loaded.languages:
            raise ToolFailure(
                "unsupported_language", f"this model does not translate from {_called(language)}; see /languages"
            )
        plan = await asyncio.to_thread(_plan, loaded.translator, cleaned, language)
        done = iter(await loaded.batcher.submit([segment for parts in plan.segments for segment in parts]))
        translations = [" ".join(next(done) for _ in parts) for parts in plan.segments]
        return Translation(join_sentences(plan.sentences, translations), language, confidence)

    async def detect(self, text: str) -> Detection:
        """The language of `text`, however unsure.

        Raises:
            ToolFailure: `empty`, or `unknown_language` where it has no letter.
            NotReady: the models are not loaded.
        """
        loaded = self._ready()
        cleaned = _clean_or_fail(text)
        if not has_letters(cleaned):
            raise ToolFailure("unknown_language", "the text has no letter that a language could be told by")
        return await asyncio.to_thread(loaded.identifier.detect, cleaned)

    @property
    def languages(self) -> list[str]:
        """FLORES-200 codes of the languages that are translated, sorted.

        Raises:
            NotReady: the models are not loaded.
        """
        return sorted(self._ready().languages)

    async def _answer_one(self, text: str) -> str | ToolFailure:
        try:
            return (await self.translate(text)).text
        except ToolFailure as failure:
            return failure

    async def _language_of(self, loaded: _Loaded, text: str, source: str | None) -> tuple[str, float | None]:
        if source is not None:
            language = parse_language(source, main_script(text))
            if language is None:
                message = f"{source!r} is no language of FLORES-200; give a code such as 'deu_Latn' or 'de', or none"
                raise ToolFailure("unknown_source", message)
            return language, None
        found = await asyncio.to_thread(loaded.identifier.detect, text)
        remedy = "name it in 'source' if you know it"
        if found.language is None:
            message = f"the text's language looks like {found.label!r}, which cannot be translated; {remedy}"
            raise ToolFailure("unknown_language", message)
        if found.confidence < self._min_confidence:
            message = (
                f"the text's language looks like {_called(found.language)}, but with a confidence of only "
                f"{found.confidence:.2f} (at least {self._min_confidence:.2f} is asked for); {remedy}"
            )
            raise ToolFailure("low_confidence", message)
        return found.language, found.confidence

    def _ready(self) -> _Loaded:
        if self._loaded is None:
            raise NotReady("the models are not loaded")
        return self._loaded


@dataclass(frozen=True)
class _Loaded:
    identifier: LanguageIdentifier
    translator: Translator
    batcher: Batcher[Segment, str]
    languages: frozenset[str]


def _plan(translator: Translator, text: str, language: str) -> _Plan:
    sentences = split_sentences(text)
    return _Plan(sentences, [translator.segments(sentence.text, language) for sentence in sentences])


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
