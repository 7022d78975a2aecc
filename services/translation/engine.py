"""Translation as an engine: makes texts ready in a thread, and translates those of concurrent calls together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from pydantic import Field
from pydantic_settings import BaseSettings

from services.base import Call, CannotStart, InBatches, NotReady, ToolFailure, fingerprint
from services.translation.language_id import Detection, LanguageIdentifier
from services.translation.model_folder import LANGUAGE_ID_NAME, UnusableModelError
from services.translation.preparing import Prepared, Preparer, Translation
from services.translation.translator import ComputeType, Device, Segment, Translated, Translator
from toolformer.model_files.digests import file_digest
from toolformer.model_files.home import BUNDLED_MODELS

logger = logging.getLogger(__name__)

BUNDLED: Final = BUNDLED_MODELS / "translation-small"
"""The small model that comes with the project."""


class TranslationSettings(BaseSettings):
    """``TOOLFORMER_TRANSLATION_MODEL``, ``_LANGUAGE_ID``, ``_DEVICE``, ... : what is loaded and how it runs."""

    model: Path = BUNDLED
    """A folder made by ``python -m services.translation.convert``."""
    language_id: Path = BUNDLED / LANGUAGE_ID_NAME
    """A fastText file: a published lid.176 or lid218e, or the bundled one."""
    device: Device = "auto"
    compute_type: ComputeType = "auto"
    threads: int = Field(0, ge=0, le=256)
    beam_size: int | None = Field(None, ge=1, le=16)
    """1 is greedy; by default what the model folder says is best."""
    min_confidence: float = Field(0.5, ge=0, le=1)
    """Below this the classifier is not trusted: the likeliest languages are tried, if the model may decline."""
    min_score: float | None = Field(None, ge=0, le=1)
    """Below this a translation is none; by default what the model folder says."""
    batch: int = Field(32, ge=1, le=1_024)
    """Sentences that are translated at once."""
    batch_wait_ms: float = Field(4.0, ge=0, le=1_000)
    """Milliseconds that a sentence waits for others to be translated with."""


class TranslationEngine(InBatches[Segment, Translated]):
    """Translates into English."""

    not_ready = "the models are not loaded"

    def __init__(self, settings: TranslationSettings) -> None:
        super().__init__(max_batch=settings.batch, wait_s=settings.batch_wait_ms / 1_000)
        self._settings = settings
        self._preparer: Preparer | None = None
        self._min_score = 0.0

    def load(self) -> Callable[[Sequence[Segment]], list[Translated]]:
        """See `InBatches.load`."""
        settings = self._settings
        try:
            identifier = LanguageIdentifier(settings.language_id)
            translator = Translator(
                settings.model,
                device=settings.device,
                compute_type=settings.compute_type,
                threads=settings.threads,
                beam_size=settings.beam_size,
            )
        except UnusableModelError as error:
            raise CannotStart(str(error)) from error
        classifier = file_digest(settings.language_id)
        self.data_version = fingerprint(translator.version, classifier, settings.min_confidence, settings.min_score)
        self._min_score = translator.manifest.min_score if settings.min_score is None else settings.min_score
        self._preparer = Preparer(identifier, translator, settings.min_confidence, self._min_score > 0)
        logger.info("translates from %d languages", len(translator.manifest.source_languages))
        return translator.translate

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """Each call's input in English, or why not (the codes are in the service's README)."""
        done = await self._translate_all([(call.input, None) for call in calls])
        return [one.text if isinstance(one, Translation) else one for one in done]

    async def translate(self, text: str, source: str | None = None) -> Translation:
        """`text` in English. English, and text without a letter, come back as they are.

        Args:
            text: see `Preparer.prepare`.
            source: see there.

        Raises:
            ToolFailure: see there; or `no_answer`, where the model is not sure enough of what it made.
            NotReady: the models are not loaded.
        """
        [done] = await self._translate_all([(text, source)])
        if isinstance(done, ToolFailure):
            raise done
        return done

    async def detect(self, text: str) -> Detection:
        """The language of `text`, however unsure.

        Raises:
            ToolFailure: see `Preparer.detect`.
            NotReady: the models are not loaded.
        """
        return await asyncio.to_thread(self._ready().detect, text)

    @property
    def languages(self) -> list[str]:
        """FLORES-200 codes of the languages that are translated, sorted.

        Raises:
            NotReady: the models are not loaded.
        """
        return sorted(self._ready().translator.manifest.source_languages)

    async def _translate_all(self, texts: Sequence[tuple[str, str | None]]) -> list[Translation | ToolFailure]:
        """What becomes of each text, given with its source; one way to the threads and back for all of them."""
        ready = await asyncio.to_thread(_prepare_all, self._ready(), texts)
        segments = [segment for one in ready if isinstance(one, Prepared) for segment in one.segments]
        done = iter(await self.ask_all(segments))
        return [self._sure(one.translated(done)) if isinstance(one, Prepared) else one for one in ready]

    def _ready(self) -> Preparer:
        if self._preparer is None:
            raise NotReady(self.not_ready)
        return self._preparer

    def _sure(self, made: Translation) -> Translation | ToolFailure:
        """`made`, or why it is none."""
        if made.score is None or made.score >= self._min_score:
            return made
        return ToolFailure(
            "no_answer",
            f"the model is not sure enough of its translation ({made.score:.2f} of {self._min_score:g}); it knows "
            "other words or sentences than these",
        )


def _prepare_all(
    preparer: Preparer, texts: Sequence[tuple[str, str | None]]
) -> list[Prepared | Translation | ToolFailure]:
    ready: list[Prepared | Translation | ToolFailure] = []
    for text, source in texts:
        try:
            ready.append(preparer.prepare(text, source))
        except ToolFailure as failure:
            ready.append(failure)
    return ready
