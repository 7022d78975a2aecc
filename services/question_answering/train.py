"""Trains the bundled retriever and reader from nothing, on questions over the bundled encyclopedia.

    python -m services.question_answering.train --out RUN

Seeded; may be killed at any moment and started again with the same command: it goes on from the last checkpoint and
sees the same questions in the same order. The two models learn apart (``--part`` trains one, so that two processes may
train both at once): the retriever to find the passage that answers among those of the whole batch, the reader to answer
from it. The finished model is in ``RUN/model``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Final, Literal

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F  # noqa: N812, the field's name for it

from demo_world import questions
from language_model.optimizers import optimizers
from language_model.training_run import TrainingRun
from services.question_answering import vocabulary
from services.question_answering.bert import Bert, BertConfig
from services.question_answering.checkpoint import READER, RETRIEVER, ModelSettings, write_part, write_settings
from services.question_answering.copying import start_as_copier
from services.question_answering.formats import PAD, prompt, reader_text, retriever_text, target
from services.question_answering.imagining import Example
from services.question_answering.padding import encoded, padded, text_batches
from services.question_answering.passages import PagePassage
from services.question_answering.retriever import mean_pooled
from services.question_answering.shown import show
from services.question_answering.t5 import T5, T5Config
from services.question_answering.train_loss import TOKENS_PER_PASS, written_loss
from services.question_answering.training_data import POOL, TrainingSet, bundled_passages
from services.question_answering.training_schedule import Schedule

Part = Literal["retriever", "reader"]
PARTS: Final[tuple[Part, ...]] = ("retriever", "reader")

_SHARPNESS: Final = 0.5
"""What dot products are scaled by before the retriever's softmax. Far less (one over the root of the width) and vectors
grow for a thousand steps before names tell passages apart."""
_VOCABULARY_QUESTIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class AnsweringRecipe:
    """What a run is. The retriever sees ``distractors`` beside each passage that answers, the reader that passage
    alone. After its steps, a model is drilled in what it still got wrong. ``passage_words`` is where passages are
    cut."""

    seed: int = 0
    batch: int = 64
    distractors: int = 2
    passage_words: int = 28
    max_tokens: int = 160
    checkpoint_every: int = 200
    retriever_steps: int = 3200
    retriever_drill: int = 1600
    retriever_drills: int = 2
    retriever_rate: float = 1e-3
    retriever_width: int = 192
    retriever_layers: int = 2
    reader_steps: int = 4000
    reader_drill: int = 1600
    reader_drills: int = 1
    reader_rate: float = 2e-3
    reader_width: int = 128
    encoder_layers: int = 3
    decoder_layers: int = 2
    head_width: int = 32

    def schedule(self, part: Part) -> Schedule:
        """How long and how fast ``part`` learns."""
        steps, rate, drill, drills = {
            RETRIEVER: (self.retriever_steps, self.retriever_rate, self.retriever_drill, self.retriever_drills),
            READER: (self.reader_steps, self.reader_rate, self.reader_drill, self.reader_drills),
        }[part]
        return Schedule(steps, rate, drill, drills, checkpoint_every=self.checkpoint_every)


class Models:
    """The two models in training and their tokenizers."""

    def __init__(self, recipe: AnsweringRecipe, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        self.recipe = recipe
        self.retriever_tokenizer, self.reader_tokenizer = tokenizers
        size = self.reader_tokenizer.get_vocab_size()
        pad, end = vocabulary.SPECIAL.index(PAD), vocabulary.SPECIAL.index(vocabulary.END)
        width = recipe.retriever_width
        bert = BertConfig(
            size, width, 2 * width, recipe.retriever_layers, width // recipe.head_width,
            positions=recipe.max_tokens, segments=1, pad_id=pad,
        )  # fmt: skip
        width = recipe.reader_width
        t5 = T5Config(
            size, width, recipe.head_width, 2 * width, recipe.encoder_layers, recipe.decoder_layers,
            width // recipe.head_width, tied=True, pad_id=pad, eos_id=end,
        )  # fmt: skip
        self.retriever = _start_as_bag_of_words(Bert(bert).initialise(recipe.seed), recipe.seed)
        self.reader = start_as_copier(T5(t5).initialise(recipe.seed), recipe.seed)

    def retriever_loss(self, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats of finding each question's passage among all passages of the batch."""
        asked = self._embed([prompt(example.question) for example in examples])
        shown = dict.fromkeys(
            passage for example in examples for passage in (example.gold, *example.distractors)
        )  # one passage once, or it would stand against itself
        places = {passage: place for place, passage in enumerate(shown)}
        passages = self._embed([retriever_text(passage) for passage in shown])
        gold = torch.tensor([places[example.gold] for example in examples])
        return F.cross_entropy(_SHARPNESS * asked @ passages.T, gold)

    def reader_loss(self, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats a token of the answers, each from the passage that says it."""
        tokenizer, most = self.reader_tokenizer, self.recipe.max_tokens
        shown = [show(tokenizer, example.question, [example.gold], most, marked=False) for example in examples]
        answers = [target(example.answer) for example in examples]
        return written_loss(self.reader, tokenizer, shown, answers, max_tokens=most)

    def _embed(self, texts: Sequence[str]) -> Tensor:
        ids = encoded(self.retriever_tokenizer, texts, self.recipe.max_tokens)
        vectors: dict[int, Tensor] = {}
        for batch in text_batches(ids, TOKENS_PER_PASS):
            rows, mask = padded([ids[number] for number in batch], self.retriever.config.pad_id)
            vectors |= dict(zip(batch, mean_pooled(self.retriever(rows, mask), mask), strict=True))
        return torch.stack([vectors[number] for number in range(len(ids))])


@torch.no_grad()
def _start_as_bag_of_words(retriever: Bert, seed: int) -> Bert:
    """Large word vectors that the layers hardly change yet: from the first step on, texts that share words are near."""
    random = torch.Generator().manual_seed(seed)
    embeddings = retriever.embeddings
    embeddings.word_embeddings.weight.normal_(0.0, 1.0, generator=random)
    embeddings.position_embeddings.weight.mul_(0.1)
    embeddings.token_type_embeddings.weight.mul_(0.1)
    for name, parameter in retriever.named_parameters():
        if name.endswith("output.dense.weight"):
            parameter.mul_(0.1)
    return retriever


@cache
def _passages(words: int) -> tuple[PagePassage, ...]:
    return tuple(bundled_passages(words))


@cache
def _tokenizers(passage_words: int, seed: int) -> tuple[Tokenizer, Tokenizer]:
    asked = (questions.question(number, seed=seed).question for number in range(_VOCABULARY_QUESTIONS))
    texts = (reader_text("", passage) for passage in _passages(passage_words))
    return vocabulary.learn(chain(map(prompt, asked), texts))


class Training:
    """A run in the folder ``out``: the models as they are now."""

    def __init__(self, out: Path, recipe: AnsweringRecipe) -> None:
        self.out = out
        self.recipe = recipe
        self.models = Models(recipe, _tokenizers(recipe.passage_words, recipe.seed))

    def train(self, part: Part, *, stop_after: int | None = None) -> None:
        """Train ``part`` (or go on training it), at most to step ``stop_after``, and write it into ``out/model``.

        Raises:
            ValueError: ``out`` holds a run of another recipe.
        """
        recipe, models = self.recipe, self.models
        data = TrainingSet(_passages(recipe.passage_words), seed=recipe.seed, distractors=recipe.distractors)
        schedule = recipe.schedule(part)

        @lru_cache(maxsize=1)
        def pool(number: int) -> list[list[Example]]:
            return data.batches(number, recipe.batch, drill=number * POOL >= schedule.steps)

        def lesson(step: int) -> list[Example]:
            numbers = range(step * recipe.batch, (step + 1) * recipe.batch)
            return [data.for_reader(number, drill=step >= schedule.steps) for number in numbers]

        model = models.retriever if part == RETRIEVER else models.reader

        def loss_of(step: int) -> Tensor:
            if part == RETRIEVER:
                return models.retriever_loss(pool(step // POOL)[step % POOL])
            return models.reader_loss(lesson(step))

        changing = optimizers(model, "adamw", betas=(0.9, 0.98), weight_decay=schedule.weight_decay)
        run = TrainingRun(self.out / part, model, changing, recipe, rate=schedule.rate, clip=schedule.clip)
        last = schedule.all_steps if stop_after is None else min(schedule.all_steps, stop_after)
        for loss in run.steps(last, loss_of):
            run.log(loss=loss)
            if schedule.ends_cycle(run.step):
                weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
                run.more["ends"] = [*run.more.get("ends", []), weights]
            if run.step % schedule.checkpoint_every == 0 or run.step == last:
                run.save()
        save_part(models, self.out / "model", part, _mean(run.more.get("ends") or [model.state_dict()]))


def _mean(ends: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of the weights at the ends of the rate's cycles, each of which found another way to be good (Izmailov et
    al., 2018)."""
    return {name: sum((end[name] for end in ends), torch.tensor(0.0)) / len(ends) for name in ends[0]}


def save_part(models: Models, folder: Path, part: Part, weights: Mapping[str, Tensor]) -> None:
    """Write one of the models with ``weights`` as the service loads it, in half precision; with both there, their
    settings too."""
    model: Bert | T5 = models.retriever if part == RETRIEVER else models.reader
    tokenizer = models.retriever_tokenizer if part == RETRIEVER else models.reader_tokenizer
    write_part(folder / part, model, tokenizer, weights)
    if all((folder / each).exists() for each in PARTS):
        origin = f"python -m services.question_answering.train, {json.dumps(asdict(models.recipe))}"
        settings = ModelSettings(
            origin=origin, passages=1, max_tokens=models.recipe.max_tokens, max_answer_tokens=24,
            passage_words=models.recipe.passage_words,
        )  # fmt: skip
        write_settings(folder, settings)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains the bundled retriever and reader."""
    parser = argparse.ArgumentParser(prog="python -m services.question_answering.train", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory of this run: checkpoints, losses, model/")
    parser.add_argument("--part", choices=PARTS, help="train this model only (default: both, one after the other)")
    parser.add_argument("--stop-after", type=int, help="end after this step, with the learning rates of a full run")
    for name, field in AnsweringRecipe.__dataclass_fields__.items():
        kind = {"int": int, "float": float}[str(field.type)]
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=field.default)
    options = vars(parser.parse_args(arguments))
    out, part, stop_after = options.pop("out"), options.pop("part"), options.pop("stop_after")
    try:
        training = Training(out, AnsweringRecipe(**options))
        for each in (part,) if part else PARTS:
            training.train(each, stop_after=stop_after)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(f"model: {out / 'model'}\n")


if __name__ == "__main__":
    main()
