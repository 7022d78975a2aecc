"""Question answering as an engine: retrieve, read, answer; in batches, in one thread of its own."""

from __future__ import annotations

import asyncio
import logging
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import torch

from services.base import Call, CannotStart, Gatherer, NotReady, ToolFailure, fingerprint
from services.bundled_pages import build_beside
from services.question_answering.agreement import agreement
from services.question_answering.checkpoint import Model, ModelError, Precision, load_model
from services.question_answering.index_folder import OpenIndex, UnusablePassagesError, open_index
from services.question_answering.passage_index import DEFAULT_PROBES, DEFAULT_REFINE
from services.question_answering.passages import PagePassage

MAX_BATCH: Final = 32
"""Questions that are read together."""

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


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


@dataclass(frozen=True, slots=True)
class Options:
    """How the engine answers.

    ``device`` and ``precision`` of the models; ``threads`` they compute with (None: torch's own choice); ``passages``
    read for a question (None: as many as the model was trained with). An approximate index looks into ``probes`` cells
    and scores ``refine`` times as many candidates exactly. An answer the reader is less sure of than ``min_score`` is
    none, nor one whose passages agree less with the question than ``min_agreement`` (None: what the model's settings
    say). A lone call waits ``wait_s`` seconds for others.
    """

    device: str = "cpu"
    precision: Precision = "float32"
    threads: int | None = None
    passages: int | None = None
    probes: int = DEFAULT_PROBES
    refine: int = DEFAULT_REFINE
    min_score: float = 0.0
    min_agreement: float | None = None
    wait_s: float = 0.005


class QuestionAnsweringEngine:
    """Answers questions from one model and one index.

    Args:
        model: the model's folder.
        index: the index's folder.
        build_bundled: makes (or renews) the index of the bundled encyclopedia at ``index`` when the engine starts.
        options: how to answer.
    """

    def __init__(
        self, model: Path, index: Path, *, build_bundled: bool = False, options: Options | None = None
    ) -> None:
        self._model_folder = model
        self._index_folder = index
        self._build_bundled = build_bundled
        self._options = options or Options()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._gatherer: Gatherer[str, Answered] | None = None
        self._min_agreement = 0.0
        self.data_version = ""
        """See `services.base.engine.HasData`: model, index and what else an answer depends on."""

    async def start(self) -> None:
        """Builds the bundled index where that is asked for, and loads model and index.

        Raises:
            CannotStart: the model cannot be loaded, or there is no finished index of this model.
        """
        try:
            if self._build_bundled:
                folders = ("--model", str(self._model_folder), "--index", str(self._index_folder))
                module = "services.question_answering.build_index"
                if status := await build_beside(module, "--pages", "bundled", *folders):
                    raise CannotStart(
                        f"the bundled index could not be made (exit status {status}); the reason is above"
                    )
            model, index = await self._in_thread(self._load)
        except (ModelError, UnusablePassagesError) as error:
            raise CannotStart(str(error)) from error
        asked = self._options.min_agreement
        self._min_agreement = model.settings.min_agreement if asked is None else asked
        self.data_version = fingerprint(model.settings, index.manifest, replace(self._options, wait_s=0.0))
        self._gatherer = Gatherer(
            lambda questions: self._in_thread(partial(_answer_batch, model, index, self._options, questions)),
            max_batch=MAX_BATCH,
            wait_s=self._options.wait_s,
        )
        self._gatherer.start()

    async def stop(self) -> None:
        """Waits for the batch that runs; what still waits is cancelled."""
        gatherer, self._gatherer = self._gatherer, None
        if gatherer is not None:
            await gatherer.stop()
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    async def answer(self, calls: Sequence[Call]) -> list[str | ToolFailure]:
        """Each question's answer, or `empty_question` or `no_answer`."""

        async def answer_one(call: Call) -> str | ToolFailure:
            try:
                return (await self.ask(call.input)).answer
            except ToolFailure as failure:
                return failure

        return list(await asyncio.gather(*map(answer_one, calls)))

    async def ask(self, question: str) -> Answered:
        """The answer to one question, and the passages it was read from.

        Raises:
            ToolFailure: ``empty_question``, or ``no_answer`` where the reader writes none or is not sure enough, or
                where the passages are about something else.
        """
        if self._gatherer is None:
            raise NotReady("the model is not loaded")
        answered = await self._gatherer.ask(require_question(question))
        if not answered.answer:
            raise ToolFailure("no_answer", "the reader found no answer in the passages")
        if answered.score < self._options.min_score:
            message = (
                f"the reader is not sure enough of an answer ({answered.score:.2f} of {self._options.min_score:g})"
            )
            raise ToolFailure("no_answer", message)
        if answered.agreement < self._min_agreement:
            message = (
                "the passages found are not about what was asked "
                f"(agreement {answered.agreement:.2f} of {self._min_agreement:g})"
            )
            raise ToolFailure("no_answer", message)
        return answered

    def _load(self) -> tuple[Model, OpenIndex]:
        options = self._options
        if options.threads is not None:
            torch.set_num_threads(options.threads)
        model = load_model(self._model_folder, device=options.device, precision=options.precision)
        index = open_index(
            self._index_folder,
            model.settings.retriever_digest,
            model.retriever.width,
            probes=options.probes,
            refine=options.refine,
        )
        logger.info("opened %s: %d passages, %s", self._index_folder, len(index.passages), index.manifest.kind)
        return model, index

    async def _in_thread(self, work: Callable[[], ResultT]) -> ResultT:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def require_question(text: str) -> str:
    """``text`` on one line, control characters as spaces.

    Raises:
        ToolFailure: ``empty_question``: it has neither a letter nor a digit.
    """
    plain = " ".join("".join(" " if unicodedata.category(sign) == "Cc" else sign for sign in text).split())
    if not any(sign.isalnum() for sign in plain):
        raise ToolFailure("empty_question", "the question has no word; ask something such as: Where is Ljubljana?")
    return plain


def _answer_batch(model: Model, index: OpenIndex, options: Options, questions: Sequence[str]) -> list[Answered]:
    """Runs in the model's thread."""
    found = retrieve(model, index, questions, options.passages or model.settings.passages)
    passages = [[one.passage for one in row] for row in found]
    answers = model.reader.answer(questions, passages)
    return [
        Answered(answer.text, answer.score, agreement(question, read), tuple(row))
        for question, answer, read, row in zip(questions, answers, passages, found, strict=True)
    ]


def retrieve(model: Model, index: OpenIndex, questions: Sequence[str], k: int) -> list[list[Found]]:
    """The best ``k`` passages for each question (fewer where the index has no more), best first."""
    scores, numbers = index.vectors.search(model.retriever.embed_questions(questions).numpy(), k)
    return [
        [Found(index.passages[number], score) for score, number in zip(row_scores, row, strict=True) if number >= 0]
        for row_scores, row in zip(scores.tolist(), numbers.tolist(), strict=True)
    ]
