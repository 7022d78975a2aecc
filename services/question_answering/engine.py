"""Question answering as an engine: retrieve, read, answer; in batches, in one thread of its own."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from pydantic import Field
from pydantic_settings import BaseSettings

from services.base import Call, CannotStart, InBatches, ToolFailure, fingerprint
from services.bundled_pages import build_beside
from services.question_answering.agreement import agreement
from services.question_answering.checkpoint import Model, ModelError, Precision, load_model
from services.question_answering.index_folder import OpenIndex, UnusablePassagesError, open_index
from services.question_answering.passage_index import DEFAULT_PROBES, DEFAULT_REFINE
from services.question_answering.passages import PagePassage
from toolformer.model_files.home import BUNDLED_MODELS

BUNDLED_MODEL: Final = BUNDLED_MODELS / "question_answering"
MAX_BATCH: Final = 32
"""Questions that are read together."""

logger = logging.getLogger(__name__)


class QuestionAnsweringSettings(BaseSettings):
    """``TOOLFORMER_QUESTION_ANSWERING_MODEL``, ``_INDEX``, ``_DEVICE``, ... and ``TOOLFORMER_DATA_DIR``."""

    model: Path = BUNDLED_MODEL
    index: Path | None = None
    """A finished index; without one the bundled encyclopedia is embedded under the data folder, once."""
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
    min_score: float = Field(0.0, ge=0.0, le=1.0)
    """An answer that the reader is less sure of is none."""
    min_agreement: float | None = Field(None, ge=0.0, le=1.0)
    """Below this an answer is none; by default what the model's folder says."""
    wait_ms: float = Field(5.0, ge=0.0, le=1_000.0)
    """How long a lone call waits for others."""
    data_dir: Path = Field(Path("var"), validation_alias="TOOLFORMER_DATA_DIR")


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a question was answered from, and its score with the retriever: a dot product."""

    passage: PagePassage
    score: float


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, the reader's confidence in it, how far its passages agree with the question (`agreement.py`; both 0 to
    1), and those passages, best first."""

    answer: str
    score: float
    agreement: float
    found: tuple[Found, ...]


class QuestionAnsweringEngine(InBatches[str, Answered]):
    """Answers questions from one model and one index."""

    def __init__(self, settings: QuestionAnsweringSettings) -> None:
        super().__init__(max_batch=MAX_BATCH, wait_s=settings.wait_ms / 1_000)
        self._settings = settings
        self._index_folder = settings.index or settings.data_dir / "question_answering" / "index"
        self._min_agreement = 0.0

    async def start(self) -> None:
        """Builds the bundled index where no other is named, and loads model and index.

        Raises:
            CannotStart: the model cannot be loaded, or there is no finished index of this model.
        """
        if self._settings.index is None:
            folders = ("--model", str(self._settings.model), "--index", str(self._index_folder))
            module = "services.question_answering.build_index"
            if status := await build_beside(module, "--pages", "bundled", *folders):
                raise CannotStart(f"the bundled index could not be made (exit status {status}); the reason is above")
        await super().start()

    def load(self) -> Callable[[Sequence[str]], list[Answered]]:
        """See `InBatches.load`."""
        settings = self._settings
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        try:
            model = load_model(settings.model, device=settings.device, precision=settings.precision)
            index = open_index(
                self._index_folder,
                model.settings.retriever_digest,
                model.retriever.width,
                probes=settings.probes,
                refine=settings.refine,
            )
        except (ModelError, UnusablePassagesError) as error:
            raise CannotStart(str(error)) from error
        logger.info("opened %s: %d passages, %s", self._index_folder, len(index.passages), index.manifest.kind)
        asked = settings.min_agreement
        self._min_agreement = model.settings.min_agreement if asked is None else asked
        how = settings.model_dump(exclude={"model", "index", "data_dir", "wait_ms"})
        self.data_version = fingerprint(model.settings, index.manifest, how)

        def answered(questions: Sequence[str]) -> list[Answered]:
            found = retrieve(model, index, questions, settings.passages or model.settings.passages)
            passages = [[one.passage for one in row] for row in found]
            return [
                Answered(answer.text, answer.score, agreement(question, read), tuple(row))
                for question, answer, read, row in zip(
                    questions, model.reader.answer(questions, passages), passages, found, strict=True
                )
            ]

        return answered

    async def answer_one(self, call: Call) -> str:
        """See `ask`."""
        return (await self.ask(call.input)).answer

    async def ask(self, question: str) -> Answered:
        """The answer to one question, and the passages it was read from.

        Raises:
            ToolFailure: ``empty_question``, or ``no_answer`` where the reader writes none or is not sure enough, or
                where the passages are about something else.
        """
        [answered] = await self.ask_all([require_question(question)])
        if not answered.answer:
            raise ToolFailure("no_answer", "the reader found no answer in the passages")
        least = self._settings.min_score
        if answered.score < least:
            message = f"the reader is not sure enough of an answer ({answered.score:.2f} of {least:g})"
            raise ToolFailure("no_answer", message)
        if answered.agreement < self._min_agreement:
            message = (
                "the passages found are not about what was asked "
                f"(agreement {answered.agreement:.2f} of {self._min_agreement:g})"
            )
            raise ToolFailure("no_answer", message)
        return answered


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
