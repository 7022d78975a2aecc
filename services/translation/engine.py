"""Translation as an engine: makes texts ready in a thread, and translates those of concurrent calls together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from services.base import Call, CannotStart, Gatherer, NotReady, ToolFailure, fingerprint
from services.translation.language_id import Detection, LanguageIdentifier
from services.translation.model_folder import UnusableModelError
from services.translation.preparing import Prepared, Preparer, Translation
from services.translation.translator import Segment, Translated, Translator
from toolformer.model_files.digests import file_digest

logger = logging.getLogger(__name__)

DEFAULT_MIN_CONFIDENCE: Final = 0.5
DEFAULT_BATCH: Final = 32
DEFAULT_BATCH_WAIT_S: Final = 0.004


class TranslationEngine:
    """Translates into English.

    Args:
        load_translator: loads the model; called in a thread when the engine starts.
        language_id: a fastText file.
        min_confidence: below this the classifier's answer is not trusted.
        min_score: a translation with a lower score is none; None for what the model's folder says.
        max_batch: segments in one batch.
        batch_wait_s: seconds that a segment waits for company.
    """

    def __init__(
        self,
        load_translator: Callable[[], Translator],
        language_id: Path,
        *,
        min_confidence: float = DEFAULT_MIN_CONFIDENCE,
        min_score: float | None = None,
        max_batch: int = DEFAULT_BATCH,
        batch_wait_s: float = DEFAULT_BATCH_WAIT_S,
    ) -> None:
        self._load_translator = load_translator
        self._language_id = language_id
        self._min_confidence = min_confidence
        self._min_score = min_score
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
        self.data_version = fingerprint(translator.version, classifier, self._min_confidence, self._min_score)
        thread = ThreadPoolExecutor(1, thread_name_prefix="batch")

        async def together(segments: Sequence[Segment]) -> Sequence[Translated]:
            return await asyncio.get_running_loop().run_in_executor(thread, translator.translate, segments)

        gatherer = Gatherer(together, max_batch=self._max_batch, wait_s=self._batch_wait_s)
        gatherer.start()
        min_score = translator.manifest.min_score if self._min_score is None else self._min_score
        self._loaded = _Loaded(Preparer(identifier, translator, self._min_confidence), gatherer, thread, min_score)
        logger.info("translates from %d languages", len(translator.manifest.source_languages))

    async def stop(self) -> None:
        """Finishes the batch at work."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.gatherer.stop()
            await asyncio.to_thread(loaded.thread.shutdown)

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
        return await asyncio.to_thread(self._ready().preparer.detect, text)

    @property
    def languages(self) -> list[str]:
        """FLORES-200 codes of the languages that are translated, sorted.

        Raises:
            NotReady: the models are not loaded.
        """
        return sorted(self._ready().preparer.translator.manifest.source_languages)

    async def _translate_all(self, texts: Sequence[tuple[str, str | None]]) -> list[Translation | ToolFailure]:
        """What becomes of each text, given with its source; one way to the threads and back for all of them."""
        loaded = self._ready()
        ready = await asyncio.to_thread(_prepare_all, loaded.preparer, texts)
        segments = [segment for one in ready if isinstance(one, Prepared) for segment in one.segments]
        done = iter(await loaded.gatherer.ask_all(segments))
        return [loaded.sure(one.translated(done)) if isinstance(one, Prepared) else one for one in ready]

    def _ready(self) -> _Loaded:
        if self._loaded is None:
            raise NotReady("the models are not loaded")
        return self._loaded


@dataclass(frozen=True)
class _Loaded:
    preparer: Preparer
    gatherer: Gatherer[Segment, Translated]
    thread: ThreadPoolExecutor
    min_score: float

    def sure(self, made: Translation) -> Translation | ToolFailure:
        """`made`, or why it is none."""
        if made.score is None or made.score >= self.min_score:
            return made
        return ToolFailure(
            "no_answer",
            f"the model is not sure enough of its translation ({made.score:.2f} of {self.min_score:g}); it knows "
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
