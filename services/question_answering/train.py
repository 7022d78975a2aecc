"""Trains a reader on real text: first to fill gaps, then on real questions, each with a sentence that answers it, then
with several found sentences, which do not always say the answer: it writes nothing to them.

    python -m services.question_answering.train --corpus CORPUS --questions READING --search ADDRESS --out RUN

``CORPUS`` is what ``toolformer jobs real-text`` wrote, ``READING`` what ``toolformer jobs reading`` wrote, ``ADDRESS``
a Wikipedia search service over an encyclopedia's pages and those of ``READING``; it is asked once. Seeded; may be
killed at any moment and started again with the same command. The model in ``RUN/model`` has no retriever: it reads
what ``TOOLFORMER_QUESTION_ANSWERING_SEARCH`` finds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import math
import os
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Final

import torch
from rich.console import Console
from rich.progress import Progress
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers.models.t5.modeling_t5 import T5Attention, T5DenseActDense

from language_model.optimizers import Optimizing, optimizers
from language_model.short_rows import attention_for
from language_model.training_run import TrainingRun
from services.base import NotReady
from services.question_answering import vocabulary
from services.question_answering.checkpoint import READER, ModelSettings, Precision, write_part, write_settings
from services.question_answering.copying import start_as_copier
from services.question_answering.formats import PAD, normalised, prompt, reader_text, says, target
from services.question_answering.nearest import nearest_sentences
from services.question_answering.padding import encoded
from services.question_answering.passages import PagePassage
from services.question_answering.reader import Reader
from services.question_answering.shown import Shown, show
from services.question_answering.t5 import T5, T5Config
from services.question_answering.train_ahead import made_ahead
from services.question_answering.train_gaps import MOST_GAPS, CorpusTexts, completion, with_gaps
from services.question_answering.train_loss import Batch, batch_of, tokens_per_pass, written_loss
from services.question_answering.train_questions import Lesson, RealQuestions, find_sentences
from services.question_answering.train_typed import as_typed
from services.question_answering.weights import load_weights

logger = logging.getLogger(__name__)

_VOCABULARY_TEXTS: Final = 30_000
_MAX_ANSWER_TOKENS: Final = 24
_BATCH_EXAMINED: Final = 16
_SURE: Final = 0.02
"""The score from which on an answer is one, until `evaluate` says which is best."""
_LENGTH: Final = frozenset({"answering_steps", "examined", "examine_every", "checkpoint_seconds"})
"""What may be changed in a run that is under way."""
_WARMUP: Final = 0.05
"""Share of the first part's steps in which the rate climbs."""
_WARMUP_BY_CLOCK: Final = 0.02
"""The same of the time of a run that ends by the clock."""
_LOWEST: Final = 0.02
_WEIGHT_DECAY: Final = 0.01
_CLIP: Final = 1.0
_SETTLED: Final = 20
"""Steps after which nothing more is compiled."""


@dataclass(frozen=True, slots=True)
class ReaderRecipe:
    """What a run is: ``gap_steps`` of ``gap_batch`` texts, ``gaps`` of them with gaps and the others sentences to
    complete, then ``answering_steps`` of questions: first ``single_steps`` of ``single_batch``, each with one sentence
    that answers it, then of ``answering_batch`` with several. In both parts the rate falls. Weights and their updates
    are float32, whatever the ``precision`` of the products."""

    seed: int = 0
    vocabulary: int = 8_192
    width: int = 256
    inner_width: int = 1_024
    head_width: int = 64
    encoder_layers: int = 6
    decoder_layers: int = 3
    max_tokens: int = 256
    passages: int = 20
    """Found for a question."""
    sentences: int = 8
    """Of them read."""
    whole: float = 0.0
    """Of the questions with several sentences, the share that have as many as are read, as in use."""
    typed: float = 0.0
    """Of the questions, the share that are worded as people type them."""
    dropout: float = 0.0
    """For questions that are seen many times."""
    without_answer: float = 0.25
    """Of the questions with several sentences, the share that none of them answers."""
    gap_steps: int = 1_000
    gap_batch: int = 32
    gaps: float = 0.3
    completed_from: int = 2
    """Sentences that are read to complete one."""
    answering_steps: int = 3_600
    single_steps: int = 1_200
    single_batch: int = 48
    completed: float = 0.25
    """Of the lessons with one sentence, the share that are sentences to complete."""
    answering_batch: int = 24
    rate: float = 2e-3
    optimizer: Optimizing = "muon"
    precision: Precision = "bfloat16"
    examined: int = 200
    """Questions held out that are asked now and then, with and without their answer."""
    examine_every: int = 1_000
    checkpoint_seconds: int = 240

    @property
    def all_steps(self) -> int:
        """Steps of the whole run."""
        return self.gap_steps + self.answering_steps

    def rate_at(self, step: int) -> float:
        """The learning rate of a step: a climb, then a cosine down to a fiftieth, in each part; the second starts at
        half the rate (warm restarts; Loshchilov and Hutter, 2017)."""
        warm = max(1, round(_WARMUP * self.gap_steps))
        if step >= self.gap_steps:
            return _cosine((step - self.gap_steps) / self.answering_steps, self.rate / 2, _LOWEST * self.rate)
        if step < warm:
            return self.rate * (step + 1) / warm
        return _cosine((step - warm) / max(1, self.gap_steps - warm), self.rate, _LOWEST * self.rate)

    def rate_by_clock(self, progress: float) -> float:
        """The learning rate of a run that ends at a time, after this share of it: as that of the second part."""
        climb = min(1.0, progress / _WARMUP_BY_CLOCK)
        return climb * _cosine(min(1.0, progress), self.rate / 2, _LOWEST * self.rate)

    def shape(self, vocabulary_size: int) -> T5Config:
        """Of the reader. T5 1.0's plain feed-forward takes three quarters of the time of 1.1's."""
        return T5Config(
            vocabulary_size, self.width, self.head_width, self.inner_width, self.encoder_layers, self.decoder_layers,
            self.width // self.head_width, feed_forward="relu", tied=True, pointed=True,
            pad_id=vocabulary.SPECIAL.index(PAD), eos_id=vocabulary.SPECIAL.index(vocabulary.END),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Examined:
    """Shares of the questions examined: answered rightly and declined where a sentence says the answer, and declined
    where none does."""

    right: float
    declined: float
    declined_without: float

    def __str__(self) -> str:
        return f"{self.right:.1%} right, {self.declined:.1%} declined; without the answer {self.declined_without:.1%}"


class ReaderTraining:
    """A run in the folder ``out``, which `prepare` has put questions into; it begins with the weights and the
    vocabulary of the model ``start``, if there is one.

    Args:
        out: the folder.
        recipe: what the run is.
        corpus: of real text; a run without gaps and without sentences to complete that has a vocabulary needs none.
        start: the model to begin with.
        device: where it computes, as torch names it.
        workers: processes that make batches ahead of it.

    Raises:
        OSError: ``start`` cannot be read.
        ValueError: ``start`` has another shape.
    """

    def __init__(
        self, out: Path, recipe: ReaderRecipe, corpus: Path | None, start: Path | None = None, *, device: str = "cpu",
        workers: int = 0,
    ) -> None:  # fmt: skip
        self.out, self.recipe = out, recipe
        self._corpus, self._device, self._workers = corpus, torch.device(device), workers
        if start is not None:
            shutil.copyfile(start / READER / "tokenizer.json", out / "tokenizer.json")
        if not (out / "tokenizer.json").exists():
            _learn_vocabulary(out / "tokenizer.json", recipe, self.texts)
        self.tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        model = T5(recipe.shape(self.tokenizer.get_vocab_size()))
        if start is None:
            self.model = start_as_copier(model.initialise(recipe.seed), recipe.seed)
        else:
            self.model = load_weights(start / READER, model, dtype=torch.float32, device=self._device)
        _set_dropout(self.model.to(self._device).requires_grad_(True), recipe.dropout)
        if self._device.type == "cuda":
            self.model.encoder.compile(dynamic=True)  # for texts of any number and length

    @cached_property
    def texts(self) -> CorpusTexts:
        """What gaps are made in: a run without any does not read it.

        Raises:
            ValueError: no corpus was given.
            OSError: it cannot be read.
        """
        if self._corpus is None:
            raise ValueError("gaps, sentences to complete and a vocabulary need a --corpus")
        return CorpusTexts(self._corpus)

    @cached_property
    def questions(self) -> RealQuestions:
        """What is learned from after the gaps: until then they need not be there."""
        return RealQuestions(self.out / "questions.jsonl", most=self.recipe.sentences)

    @cached_property
    def held_out(self) -> RealQuestions:
        """What is asked now and then."""
        return RealQuestions(self.out / "held-out.jsonl", most=self.recipe.sentences)

    def train(self, *, stop_after: int | None = None, seconds: float | None = None) -> None:
        """Train (or go on training), at most to step ``stop_after``, and write the model into ``out/model``; or train
        on questions for ``seconds``, in which the rate falls, whatever the number of steps comes to be.

        Raises:
            ValueError: ``out`` holds a run of another recipe.
            OSError: the questions cannot be read.
        """
        recipe, began = self.recipe, time.monotonic()

        def rate(step: int) -> float:
            return recipe.rate_at(step) if seconds is None else recipe.rate_by_clock(passed() / seconds)

        def passed() -> float:
            return time.monotonic() - began

        changing = optimizers(self.model, recipe.optimizer, betas=(0.9, 0.98), weight_decay=_WEIGHT_DECAY)
        run = TrainingRun(self.out / READER, self.model, changing, recipe, rate=rate, clip=_CLIP, length=_LENGTH)
        last = recipe.all_steps if stop_after is None else min(recipe.all_steps, stop_after)
        if self._workers and last > recipe.gap_steps:
            _ = self.questions  # read once, not by each process
        batches = made_ahead(self._batch, range(run.step, last), self._workers)
        saved, losses, run_from = time.monotonic(), list[float](), run.step
        with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as progress:
            bar = progress.add_task("reader", total=recipe.all_steps, completed=run.step)
            for loss in run.steps(last, lambda step: self._loss(next(batches), settled=step > run_from + _SETTLED)):
                run.log(loss=loss)
                losses.append(loss)
                progress.advance(bar)
                done = run.step == last or (seconds is not None and passed() >= seconds)
                if run.step % 50 == 0:
                    of_all = "" if seconds else f" of {recipe.all_steps}"
                    logger.info("step %d%s, %.1f s: loss %.3f", run.step, of_all, passed(), fmean(losses))
                    losses.clear()
                if done or time.monotonic() - saved > recipe.checkpoint_seconds:
                    run.save()
                    saved = time.monotonic()
                if done or run.step % recipe.examine_every == 0:
                    self.write(self.out / "model")
                    if run.step > recipe.gap_steps:
                        logger.info("step %d: %s", run.step, self.examine())
                if done:
                    break
        batches.close()

    def examine(self) -> Examined:
        """How the reader does on questions held out."""
        reader = Reader(
            self.model.eval(), self.tokenizer, max_tokens=self.recipe.max_tokens, max_answer_tokens=_MAX_ANSWER_TOKENS,
            marked=True,
        )  # fmt: skip
        asked = len(self.held_out)
        numbers = range(0, asked, max(1, asked // self.recipe.examined))[: self.recipe.examined]
        right, declined = [], {True: list[bool](), False: list[bool]()}
        for answered in (True, False):
            lessons = [self.held_out.lesson(number, answered=answered) for number in numbers]
            for first in range(0, len(lessons), _BATCH_EXAMINED):
                batch = lessons[first : first + _BATCH_EXAMINED]
                with self._products(), torch.compiler.set_stance("force_eager"):
                    found = reader.answer([one.question for one in batch], [one.passages for one in batch])
                given = [one.text if one.score >= _SURE else "" for one in found]
                declined[answered] += [not one for one in given]
                right += [
                    normalised(one) == normalised(lesson.answer)
                    for one, lesson in zip(given, batch, strict=True)
                    if answered
                ]
        return Examined(fmean(right), fmean(declined[True]), fmean(declined[False]))

    def write(self, folder: Path) -> None:
        """Write the reader as it is as a model that the service loads."""
        write_part(folder / READER, self.model, self.tokenizer, self.model.state_dict())
        settings = ModelSettings(
            origin=f"python -m services.question_answering.train, {json.dumps(asdict(self.recipe))}",
            passages=self.recipe.passages,
            max_tokens=self.recipe.max_tokens,
            max_answer_tokens=_MAX_ANSWER_TOKENS,
            min_score=_SURE,
            marked=True,
            sentences=self.recipe.sentences,
        )
        write_settings(folder, settings)

    def _loss(self, batch: Batch, *, settled: bool) -> Tensor:
        # A single text would be compiled by itself, for longer than it saves.
        stance = torch.compiler.set_stance("eager_on_recompile") if settled else contextlib.nullcontext()
        with self._products(), stance:
            return written_loss(self.model.train(), batch)

    def _batch(self, step: int) -> Batch:
        recipe, rng = self.recipe, random.Random(f"reader-{self.recipe.seed}-{step}")
        if step < recipe.gap_steps:
            rows = [self._gaps(rng) for _ in range(recipe.gap_batch)]
        elif step < recipe.gap_steps + recipe.single_steps:
            rows = [self._answered(self._single(rng)) for _ in range(recipe.single_batch)]
        else:
            rows = [self._answered(self._several(rng)) for _ in range(recipe.answering_batch)]
        shown, written = zip(*rows, strict=True)
        return batch_of(
            self.tokenizer, shown, written, pad=self.model.config.pad_id, max_tokens=recipe.max_tokens,
            per_pass=tokens_per_pass(self._device),
        )  # fmt: skip

    def _gaps(self, rng: random.Random) -> tuple[list[Shown], str]:
        if rng.random() >= self.recipe.gaps and (found := self._completion(rng)):
            return self._answered(found)
        text, filled = with_gaps(" ".join(self.texts.passage(rng)), rng)
        [ids] = encoded(self.tokenizer, [text], self.recipe.max_tokens)
        return [Shown(ids, [self.model.config.pad_id] * len(ids))], filled

    def _completion(self, rng: random.Random) -> Lesson | None:
        """A sentence to complete from the others of its text, read as found ones are."""
        if (found := completion(self.texts.passage(rng), rng)) is None:
            return None
        sentence, rest, name = found
        read = nearest_sentences(sentence, [PagePassage("", "", rest)], self.recipe.completed_from)
        return Lesson(sentence, tuple(read), name) if any(says(one.text, name) for one in read) else None

    def _single(self, rng: random.Random) -> Lesson:
        if rng.random() < self.recipe.completed and (found := self._completion(rng)):
            return found
        return self._as_typed(self.questions.drawn(rng, most=1), rng)

    def _several(self, rng: random.Random) -> Lesson:
        # Few sentences more often than many: what is learned from them is the same, and costs less.
        most = min(rng.randint(2, self.recipe.sentences) for _ in range(2))
        if rng.random() < self.recipe.whole:
            most = self.recipe.sentences
        return self._as_typed(self.questions.drawn(rng, most=most, without=self.recipe.without_answer), rng)

    def _as_typed(self, lesson: Lesson, rng: random.Random) -> Lesson:
        if rng.random() >= self.recipe.typed:
            return lesson
        return replace(lesson, question=as_typed(lesson.question, rng))

    def _answered(self, lesson: Lesson) -> tuple[list[Shown], str]:
        """What the reader is given, and what it is to write."""
        shown = show(
            self.tokenizer, lesson.question, lesson.passages, self.recipe.max_tokens, marked=True, answer=lesson.answer
        )
        return shown, target(lesson.answer)

    @contextlib.contextmanager
    def _products(self) -> Iterator[None]:
        device = self._device
        with (
            torch.autocast(device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16"),
            attention_for(device, self.recipe.max_tokens),
        ):
            yield


def _cosine(progress: float, first: float, last: float) -> float:
    return last + (first - last) * (1 + math.cos(math.pi * progress)) / 2


def _set_dropout(model: nn.Module, share: float) -> None:
    """In training, leave out a ``share`` of the weights of attention and of what is inside a feed-forward; not of what
    the layers hand on, from which a reader copies (a tenth of that brings a trained one's loss from 2.5 to 7)."""
    for module in model.modules():
        if isinstance(module, T5DenseActDense):
            module.dropout.p = share
        elif isinstance(module, T5Attention):
            module.dropout = share


def _learn_vocabulary(path: Path, recipe: ReaderRecipe, texts: CorpusTexts) -> None:
    logger.info("learning the vocabulary")
    _, tokenizer = vocabulary.learn(_vocabulary_texts(recipe, texts), vocab_size=recipe.vocabulary, gaps=MOST_GAPS)
    tokenizer.save(str(path), pretty=False)


def _vocabulary_texts(recipe: ReaderRecipe, texts: CorpusTexts) -> Iterator[str]:
    rng = random.Random(f"vocabulary-{recipe.seed}")
    for _ in range(_VOCABULARY_TEXTS):
        sentences = texts.passage(rng)
        yield reader_text(prompt(sentences[0]), PagePassage("", "", " ".join(sentences)))


def prepare(questions: Path, address: str, out: Path, passages: int) -> None:
    """Find ``passages`` for each question in ``questions`` and write their nearest sentences into ``out``; goes on
    where it was.

    Raises:
        NotReady: the search service cannot be asked.
        OSError: the questions cannot be read.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("questions.jsonl", "held-out.jsonl"):
        done = 0
        for done in find_sentences(questions / name, out / name, address, passages):
            if done % 1_024 == 0:
                logger.info("%s: sentences found for %d", name, done)
        logger.info("%s: sentences found for %d", name, done)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains a reader on real text."""
    parser = argparse.ArgumentParser(
        prog="python -m services.question_answering.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--corpus", type=Path, help="a base model's corpus of real text, if gaps are to be filled")
    parser.add_argument("--questions", type=Path, help="questions to find sentences for first")
    parser.add_argument("--search", help="address of the search service to find them with")
    parser.add_argument("--out", type=Path, required=True, help="directory of this run: checkpoints, losses, model/")
    parser.add_argument("--start", type=Path, help="model whose weights a new run begins with")
    parser.add_argument("--stop-after", type=int, help="end after this step, with the learning rates of a full run")
    parser.add_argument("--seconds", type=float, help="end after this time, in which the learning rate falls")
    parser.add_argument("--threads", type=int, help="of the processor (default: torch's choice)")
    parser.add_argument("--device", choices=("cpu", "cuda"), help="where to train (default: a GPU if there is one)")
    parser.add_argument("--workers", type=int, help="processes that make batches (default: none, on a GPU most cores)")
    for name, field in ReaderRecipe.__dataclass_fields__.items():
        kind = {"int": int, "float": float}.get(str(field.type), str)
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=field.default)
    options = vars(parser.parse_args(arguments))
    corpus, questions, search, out, start = (
        options.pop(name) for name in ("corpus", "questions", "search", "out", "start")
    )
    stop_after, seconds, threads, device, workers = (
        options.pop(name) for name in ("stop_after", "seconds", "threads", "device", "workers")
    )
    has_gpu = torch.cuda.is_available()
    if device == "cuda" and not has_gpu:
        parser.error("--device cuda: torch finds no GPU here; leave it out, or install torch with CUDA")
    device = device or ("cuda" if has_gpu else "cpu")
    if workers is None:
        workers = 0 if device == "cpu" else max(1, (os.cpu_count() or 1) - 2)
    if (questions is None) != (search is None):
        parser.error("--questions and --search go together")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    if threads:
        torch.set_num_threads(threads)
    try:
        recipe = ReaderRecipe(**options)
        if questions is not None:
            prepare(questions, search, out, recipe.passages)
        training = ReaderTraining(out, recipe, corpus, start, device=device, workers=workers)
        training.train(stop_after=stop_after, seconds=seconds)
    except (ValueError, OSError, NotReady) as error:
        parser.exit(1, f"question_answering: {error}\n")
    sys.stdout.write(f"model: {out / 'model'}\n")


if __name__ == "__main__":
    main()
