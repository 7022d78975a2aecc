"""Translation as a service."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, Query
from pydantic import BaseModel, Field

from services.base import ServiceInfo, create_app, read_settings
from services.translation.engine import TranslationEngine, TranslationSettings
from services.translation.flores import LANGUAGES
from toolformer.http_api import UnicodeText, documented_errors

MAX_CHARS: Final = 2_000
INFO = ServiceInfo(
    tool="MT",
    service="translation",
    title="Machine translation",
    description="Translates words or sentences of another language into English.",
    version="1.0.0",
    input_description="A text in another language than English, without quotes.",
    example_input="Das Treffen findet am 20. November 2026 statt.",
    example_output="The meeting takes place on November 20, 2026.",
    max_input_chars=MAX_CHARS,
    max_batch=32,
    max_in_flight=128,
    answer_seconds=60.0,
)


class TranslationResult(BaseModel):
    """A text and its English."""

    text: str
    source: str | None = Field(description="FLORES-200 code of the text's language; null where it has no letter.")
    confidence: float | None = Field(description="The classifier's probability; null where it was not asked.")
    score: float | None = Field(description="How sure the model is, 0 to 1; null where it was not asked.")
    translation: str


class DetectionResult(BaseModel):
    """A text and its language."""

    text: str
    language: str | None = Field(description="FLORES-200 code; null where FLORES-200 does not hold the language.")
    name: str | None = Field(description="The language's name in English.")
    confidence: float = Field(description="The classifier's probability, 0 to 1.")
    label: str = Field(description="The classifier's own most likely label.")


class KnownLanguage(BaseModel):
    """A language that is translated."""

    code: str
    name: str


Text = Annotated[UnicodeText, Query(max_length=MAX_CHARS, description="The text.", examples=[INFO.example_input])]


def _router(engine: TranslationEngine) -> APIRouter:
    router = APIRouter(tags=["translation"], responses=documented_errors(422))

    @router.get("/translate", summary="Translate a text into English")
    async def translate(
        text: Text,
        source: Annotated[
            UnicodeText | None,
            Query(max_length=20, description="Its language, FLORES-200 or ISO 639; by default it is detected."),
        ] = None,
    ) -> TranslationResult:
        """The text in English. English, and text without a letter, come back unchanged."""
        done = await engine.translate(text, source)
        confidence = None if done.confidence is None else round(done.confidence, 4)
        score = None if done.score is None else round(done.score, 2)
        return TranslationResult(
            text=text, source=done.source, confidence=confidence, score=score, translation=done.text
        )

    @router.get("/detect", summary="Name a text's language")
    async def detect(text: Text) -> DetectionResult:
        """The most likely language, however unlikely; `/translate` asks for a confidence."""
        found = await engine.detect(text)
        name = None if found.language is None else LANGUAGES[found.language]
        return DetectionResult(
            text=text,
            language=found.language,
            name=name,
            confidence=round(found.confidence, 4),
            label=found.label,
        )

    @router.get("/languages", summary="The languages that are translated")
    async def languages() -> list[KnownLanguage]:
        """All of them, by code."""
        return [KnownLanguage(code=code, name=LANGUAGES[code]) for code in engine.languages]

    return router


def build_app(settings: TranslationSettings | None = None) -> FastAPI:
    """The service's app.

    Args:
        settings: by default those of the environment.

    Raises:
        ConfigurationError: a setting cannot hold.
    """
    settings = settings or read_settings(TranslationSettings, INFO.service)
    engine = TranslationEngine(settings)
    return create_app(INFO, engine, _router(engine))
