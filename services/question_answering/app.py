"""Question answering as a service."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, FastAPI, Query
from pydantic import BaseModel, Field

from services.base import ConfigurationError, ServiceInfo, create_app, read_settings
from services.question_answering.checkpoint import ModelError
from services.question_answering.checkpoint import read_settings as read_model_settings
from services.question_answering.engine import NO_INDEX, QuestionAnsweringEngine, QuestionAnsweringSettings
from services.question_answering.index_folder import UnusablePassagesError, read_manifest
from toolformer.http_api import ApiError, UnicodeText, documented_errors

MAX_QUESTION_CHARS: Final = 500

INFO = ServiceInfo(
    tool="QA",
    service="question_answering",
    title="Question answering",
    description="Answers a factual question in a few words, from passages of an encyclopedia.",
    version="1.0.0",
    input_description="A question in English about one fact.",
    example_input="What is the population of Ljubljana?",
    example_output="272,220",
    max_input_chars=MAX_QUESTION_CHARS,
    max_in_flight=128,
    answer_seconds=60.0,
)


class UsedPassage(BaseModel):
    """A passage that the answer was read from."""

    id: str
    title: str = Field(description="The page's title, and after a colon its section.")
    text: str
    score: float = Field(description="Dot product of the question's and the passage's vectors; of a search, BM25.")


class AnswerWithPassages(BaseModel):
    """An answer and what it was read from."""

    question: str
    answer: str
    score: float = Field(description="How sure the reader is: the geometric mean of its tokens' probabilities.")
    passages: list[UsedPassage] = Field(description="Best first.")


def _router(engine: QuestionAnsweringEngine) -> APIRouter:
    router = APIRouter(tags=["question answering"])

    @router.get("/answer", summary="Answer a question", responses=documented_errors(422))
    async def answer(
        question: Annotated[
            UnicodeText,
            Query(max_length=MAX_QUESTION_CHARS, description=INFO.input_description, examples=[INFO.example_input]),
        ],
    ) -> AnswerWithPassages:
        """The answer and the passages it was read from; 422 with the reason as `code` where there is none."""
        try:
            async with asyncio.timeout(INFO.answer_seconds):
                answered = await engine.ask(question)
        except TimeoutError:
            message = f"the tool did not answer within {INFO.answer_seconds:g} seconds"
            raise ApiError(503, message, code="timeout", headers={"Retry-After": "2"}) from None
        return AnswerWithPassages(
            question=question,
            answer=answered.answer,
            score=round(answered.score, 4),
            passages=[
                UsedPassage(
                    id=one.passage.id, title=one.passage.heading, text=one.passage.text, score=round(one.score, 4)
                )
                for one in answered.found
            ],
        )

    return router


def build_app(settings: QuestionAnsweringSettings | None = None) -> FastAPI:
    """The service's app.

    Args:
        settings: by default those of the environment.

    Raises:
        ConfigurationError: a setting cannot hold, or names a model or an index that is missing or incomplete.
    """
    settings = settings or read_settings(QuestionAnsweringSettings, INFO.service)
    _require_model_and_index(settings)
    engine = QuestionAnsweringEngine(settings)
    return create_app(INFO, engine, _router(engine))


def _require_model_and_index(settings: QuestionAnsweringSettings) -> None:
    """Fail at once, in one line, instead of staying up without ever becoming ready."""
    try:
        read_model_settings(settings.model)
    except ModelError as error:
        remedy = "services/question_answering/README.md says how to convert or train one"
        raise ConfigurationError(f"TOOLFORMER_QUESTION_ANSWERING_MODEL: {error}; {remedy}") from error
    if settings.searched is None:
        try:
            if settings.index is None:
                raise UnusablePassagesError(NO_INDEX)
            read_manifest(settings.index)
        except UnusablePassagesError as error:
            raise ConfigurationError(f"TOOLFORMER_QUESTION_ANSWERING_INDEX: {error}") from error
