"""Question answering as an engine: retrieve, read, answer; in batches, in one thread of its own."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from services.base import Call, CannotStart, InBatches, ToolFailure, fingerprint
from services.question_answering.checkpoint import (
    RETRIEVER,
    Model,
    ModelError,
    ModelSettings,
    Precision,
    load_model,
    load_reader,
)
from services.question_answering.index_folder import OpenIndex, UnusablePassagesError, open_index
from services.question_answering.names import unknown_name
from services.question_answering.page_search import PageSearch
from services.question_answering.passage_index import DEFAULT_PROBES, DEFAULT_REFINE
from services.question_answering.passages import Found
from services.question_answering.reader import Reader
from toolformer.model_files.home import BUNDLED_MODELS

BUNDLED_MODEL: Final = BUNDLED_MODELS / "question_answering"
MAX_BATCH: Final = 32
"""Questions that are read together."""
NO_INDEX: Final = "the model has a retriever: name a finished index of it, or a search service in _SEARCH"

logger = logging.getLogger(__name__)


class QuestionAnsweringSettings(BaseSettings):
    """``TOOLFORMER_QUESTION_ANSWERING_MODEL``, ``_INDEX``, ``_DEVICE``, ..."""

    model_config = SettingsConfigDict(env_ignore_empty=True)  # the compose file passes on what nobody has set

    model: Path = BUNDLED_MODEL
    index: Path | None = None
    """A finished index of a model that has a retriever."""
    search: str | None = Field(None, pattern=r"^https?://\S+$")
    """Address of a Wikipedia search service whose passages are read; retriever and index are then not used."""
    wikisearch_url: str = Field(
        "http://127.0.0.1:8103", pattern=r"^https?://\S+$", validation_alias="TOOLFORMER_TOOL_WIKISEARCH_URL"
    )
    """The same for a model without a retriever, where no other is named."""
    device: str = Field("cpu", pattern=r"^(cpu|cuda(:\d+)?)$")
    precision: Precision = "float32"
    """Of weights and states."""
    threads: int | None = Field(None, ge=1, le=256)
    """By default torch's own choice."""
    passages: int | None = Field(None, ge=1, le=100)
    """Read for a question; by default as many as the model was trained with."""
    probes: int = Field(DEFAULT_PROBES, ge=1)
    """Cells that an approximate index looks into."""
    refine: int = Field(DEFAULT_REFINE, ge=1, le=1_000)
    """How many times as many candidates an approximate index scores exactly."""
    min_score: float | None = Field(None, ge=0.0, le=1.0)
    """An answer that the reader is less sure of is none; by default what the model's folder says."""
    wait_ms: float = Field(5.0, ge=0.0, le=1_000.0)
    """How long a lone call waits for others."""

    @property
    def searched(self) -> str | None:
        """Address of the search service that finds passages; ``None``: the model's retriever does."""
        return self.search or (None if (self.model / RETRIEVER).is_dir() else self.wikisearch_url)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and the passages to answer it from where they have been found already."""

    question: str
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, the reader's confidence in it (0 to 1), and the passages it was read from, best first."""

    answer: str
    score: float
    found: tuple[Found, ...]


class QuestionAnsweringEngine(InBatches[Asked, Answered]):
    """Answers questions from one model and one index, or from what a search service finds."""

    def __init__(self, settings: QuestionAnsweringSettings) -> None:
        super().__init__(max_batch=MAX_BATCH, wait_s=settings.wait_ms / 1_000)
        self._settings = settings
        self._min_score = 0.0
        self._passages = settings.passages or 0
        self._own_version = ""
        self._search = None if settings.searched is None else PageSearch(settings.searched)

    async def start(self) -> None:
        """Loads model and index; or loads the reader, and waits until the search service is ready.

        Raises:
            CannotStart: the model cannot be loaded, or there is no finished index of this model.
        """
        await super().start()
        if self._search is not None:
            await self._search.wait()
            self._own_version = self.data_version
            self._name_version(self._search)

    async def stop(self) -> None:
        """See `InBatches.stop`."""
        await super().stop()
        if self._search is not None:
            await self._search.aclose()

    def load(self) -> Callable[[Sequence[Asked]], list[Answered]]:
        """See `InBatches.load`."""
        settings = self._settings
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        try:
            about, reader, found = self._reader_and_passages()
        except (ModelError, UnusablePassagesError) as error:
            raise CannotStart(str(error)) from error
        self._min_score = about.min_score if settings.min_score is None else settings.min_score

        def answered(asked: Sequence[Asked]) -> list[Answered]:
            questions, rows = [one.question for one in asked], found(asked)
            passages = [[one.passage for one in row] for row in rows]
            return [
                Answered(answer.text, answer.score, tuple(row))
                for answer, row in zip(reader.answer(questions, passages), rows, strict=True)
            ]

        return answered

    def _reader_and_passages(
        self,
    ) -> tuple[ModelSettings, Reader, Callable[[Sequence[Asked]], Sequence[Sequence[Found]]]]:
        """The model's settings and reader, and what finds passages to read; sets `data_version`.

        Raises:
            ModelError: see `load_model`.
            UnusablePassagesError: see `open_index`; or no index is named.
        """
        settings = self._settings
        how = settings.model_dump(exclude={"model", "index", "wait_ms", "wikisearch_url"})
        where: dict[str, Any] = {"device": settings.device, "precision": settings.precision}
        if self._search is not None:
            about, reader = load_reader(settings.model, **where)
            self._passages = settings.passages or about.passages
            self.data_version = fingerprint(about, how)
            return about, reader, lambda asked: [one.found for one in asked]
        if settings.index is None:
            raise UnusablePassagesError(NO_INDEX)
        model = load_model(settings.model, **where)
        about = model.settings
        index = open_index(
            settings.index,
            about.retriever_digest,
            model.retriever.width,
            probes=settings.probes,
            refine=settings.refine,
        )
        logger.info("opened %s: %d passages, %s", settings.index, len(index.passages), index.manifest.kind)
        self.data_version = fingerprint(about, index.manifest, how)
        k = settings.passages or about.passages
        return about, model.reader, lambda asked: retrieve(model, index, [one.question for one in asked], k)

    async def answer_one(self, call: Call) -> str:
        """See `ask`."""
        return (await self.ask(call.input)).answer

    async def ask(self, question: str) -> Answered:
        """The answer to one question, and the passages it was read from.

        Raises:
            ToolFailure: ``empty_question``, or ``no_answer`` where the reader writes none or is not sure enough, where
                there are no passages, or where those found have none of the question's names (if it may decline).
            NotReady: the search service cannot be asked.
        """
        asked = Asked(require_question(question))
        if self._search is not None:
            asked = replace(asked, found=tuple(await self._search.find(asked.question, self._passages)))
            self._name_version(self._search)
            if not asked.found:
                raise ToolFailure("no_answer", "no page has any of the question's words")
            if self._min_score and (name := unknown_name(asked.question, [one.passage for one in asked.found])):
                raise ToolFailure("no_answer", f"no page that was found says '{name}'")
        [answered] = await self.ask_all([asked])
        if not answered.answer:
            raise ToolFailure("no_answer", "the reader found no answer in the passages")
        if answered.score < self._min_score:
            message = f"the reader is not sure enough of an answer ({answered.score:.2f} of {self._min_score:g})"
            raise ToolFailure("no_answer", message)
        return answered

    def _name_version(self, search: PageSearch) -> None:
        """`data_version`, also after the search service was started again with another index."""
        self.data_version = fingerprint(self._own_version, search.version)


def require_question(text: str) -> str:
    """``text`` on one line, control characters as spaces.

    Raises:
        ToolFailure: ``empty_question``: it has neither a letter nor a digit.
    """
    plain = " ".join("".join(" " if unicodedata.category(sign) == "Cc" else sign for sign in text).split())
    if not any(sign.isalnum() for sign in plain):
        raise ToolFailure("empty_question", "the question has no word; ask something such as: Where is Ljubljana?")
    return plain


def retrieve(model: Model, index: OpenIndex, questions: Sequence[str], k: int) -> list[list[Found]]:
    """The best ``k`` passages for each question (fewer where the index has no more), best first."""
    scores, numbers = index.vectors.search(model.retriever.embed_questions(questions).numpy(), k)
    return [
        [Found(index.passages[number], score) for score, number in zip(row_scores, row, strict=True) if number >= 0]
        for row_scores, row in zip(scores.tolist(), numbers.tolist(), strict=True)
    ]
