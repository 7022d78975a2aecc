"""Trains the bundled retriever and reader from nothing, on questions over the bundled encyclopedia.

    python -m services.question_answering.train --out RUN --steps 5000

Seeded; may be killed at any moment and started again with the same command: it goes on from the last checkpoint and
sees the same questions in the same order. The finished model stands in ``RUN/model``. The two models are trained side
by side: the retriever to find the passage that answers among those of the whole batch, the reader to answer, first from
the passage that answers alone, then from that one among passages that mislead.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812, the field's name for it

from demo_world import questions
from services.question_answering import vocabulary
from services.question_answering.bert import Bert, BertConfig
from services.question_answering.checkpoint import READER, RETRIEVER, ModelSettings, write_settings
from services.question_answering.copying import start_as_copier
from services.question_answering.formats import prompt, reader_text, retriever_text, target
from services.question_answering.padding import encoded, padded, text_batches
from services.question_answering.reader import encode_apart, fused
from services.question_answering.retriever import mean_pooled
from services.question_answering.t5 import T5, T5Config
from services.question_answering.training_data import Example, TrainingSet, bundled_passages
from services.question_answering.weights import save_weights

_STATE: Final = "state.pt"
_LOG: Final = "loss.jsonl"
TOKENS_PER_PASS: Final = 2_048
"""Tokens that are encoded together in training: few, so that texts of one length meet and little is padding."""
_VOCABULARY_QUESTIONS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a run is. ``batch`` counts questions a step. The reader answers from one passage for the first share
    ``single`` of the steps, from ``passages`` after it. The retriever, which learns faster, takes part in every
    ``retriever_every``-th step. ``passage_words`` is where passages are cut; ``warmup`` is a share of ``steps``; the
    rate falls along a cosine to a fiftieth of ``peak_rate``."""

    steps: int
    seed: int = 0
    batch: int = 64
    passages: int = 3
    single: float = 0.2
    retriever_every: int = 2
    passage_words: int = 28
    peak_rate: float = 2e-3
    warmup: float = 0.05
    weight_decay: float = 0.01
    clip: float = 1.0
    width: int = 128
    heads: int = 4
    inner_width: int = 256
    encoder_layers: int = 3
    decoder_layers: int = 2
    retriever_layers: int = 2
    max_tokens: int = 160
    checkpoint_every: int = 200

    def rate(self, step: int) -> float:
        """Learning rate of the step with this number (from 0)."""
        warm = max(1, round(self.warmup * self.steps))
        if step < warm:
            return self.peak_rate * (step + 1) / warm
        progress = (step - warm) / max(1, self.steps - warm)
        return self.peak_rate * (0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2)


class Models:
    """The two models in training and their tokenizers."""

    def __init__(self, recipe: Recipe, tokenizers: tuple[Tokenizer, Tokenizer]) -> None:
        self.recipe = recipe
        self.retriever_tokenizer, self.reader_tokenizer = tokenizers
        size = self.reader_tokenizer.get_vocab_size()
        pad, end = vocabulary.SPECIAL.index(vocabulary.PAD), vocabulary.SPECIAL.index(vocabulary.END)
        bert = BertConfig(
            size, recipe.width, recipe.inner_width, recipe.retriever_layers, recipe.heads,
            positions=recipe.max_tokens, segments=1, pad_id=pad,
        )  # fmt: skip
        t5 = T5Config(
            size, recipe.width, recipe.width // recipe.heads, recipe.inner_width, recipe.encoder_layers,
            recipe.decoder_layers, recipe.heads, tied=True, pad_id=pad, eos_id=end,
        )  # fmt: skip
        self.retriever = Bert(bert).initialise(recipe.seed)
        self.reader = start_as_copier(T5(t5).initialise(recipe.seed), recipe.seed)

    def retriever_loss(self, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats of finding each question's passage among all passages of the batch."""
        asked = self._embed([prompt(example.question) for example in examples])
        shown = {example.gold.id: example.gold for example in examples}
        shown |= {passage.id: passage for example in examples for passage in example.distractors}
        passages = self._embed([retriever_text(passage) for passage in shown.values()])
        places = {passage: place for place, passage in enumerate(shown)}
        gold = torch.tensor([places[example.gold.id] for example in examples])
        return F.cross_entropy(asked @ passages.T / math.sqrt(self.recipe.width), gold)

    def reader_loss(self, examples: Sequence[Example]) -> Tensor:
        """Cross-entropy in nats a token of the answers, from the gold passage among distractors."""
        texts = [
            reader_text(prompt(example.question), passage)
            for example in examples
            for passage in (example.gold, *example.distractors)
        ]
        pad, longest = self.reader.config.pad_id, self.recipe.max_tokens
        ids = encoded(self.reader_tokenizer, texts, longest)
        states = encode_apart(self.reader, ids, TOKENS_PER_PASS)
        together, seen = fused(states, [1 + len(example.distractors) for example in examples])
        answers = encoded(self.reader_tokenizer, [target(example.answer) for example in examples], longest)
        labels, written = padded(answers, pad)
        inputs = F.pad(labels[:, :-1], (1, 0), value=pad)
        logits = self.reader.decode(inputs, self.reader.remember(together, seen))
        return F.cross_entropy(logits[written], labels[written])

    def _embed(self, texts: Sequence[str]) -> Tensor:
        ids = encoded(self.retriever_tokenizer, texts, self.recipe.max_tokens)
        vectors: dict[int, Tensor] = {}
        for batch in text_batches(ids, TOKENS_PER_PASS):
            rows, mask = padded([ids[number] for number in batch], self.retriever.config.pad_id)
            vectors |= dict(zip(batch, mean_pooled(self.retriever(rows, mask), mask), strict=True))
        return torch.stack([vectors[number] for number in range(len(ids))])


def train(out: Path, recipe: Recipe, *, stop_after: int | None = None) -> Models:
    """Train (or go on training) in ``out``, at most to step ``stop_after``, and write the model as it is then.

    Raises:
        ValueError: ``out`` holds a run of another recipe.
    """
    out.mkdir(parents=True, exist_ok=True)
    passages = list(bundled_passages(recipe.passage_words))
    data = TrainingSet(passages, seed=recipe.seed, distractors=recipe.passages - 1)
    asked = [questions.question(number, seed=recipe.seed).question for number in range(_VOCABULARY_QUESTIONS)]
    texts = [*map(prompt, asked), *(reader_text("", passage) for passage in passages)]
    models = Models(recipe, vocabulary.learn(texts))
    optimizer = torch.optim.AdamW(
        [*models.retriever.parameters(), *models.reader.parameters()],
        lr=recipe.peak_rate, betas=(0.9, 0.98), weight_decay=recipe.weight_decay, fused=True,
    )  # fmt: skip
    step = _resume(out, models, optimizer)
    last = recipe.steps if stop_after is None else min(recipe.steps, stop_after)
    with (out / _LOG).open("a", buffering=1) as log:
        while step < last:
            began = time.perf_counter()
            losses = _train_step(models, optimizer, data, step)
            step += 1
            line = {"step": step, **losses, "seconds": round(time.perf_counter() - began, 3)}
            log.write(json.dumps(line) + "\n")
            if step % recipe.checkpoint_every == 0 or step == last:
                _save_state(out, models, optimizer, step)
    save_model(models, out / "model", step)
    return models


def save_model(models: Models, folder: Path, steps: int, *, passages: int = 1) -> None:
    """Write the models after ``steps`` as the service loads them, in half precision; ``passages`` are read for a
    question."""
    recipe = models.recipe
    for name, model, tokenizer in (
        (RETRIEVER, models.retriever, models.retriever_tokenizer),
        (READER, models.reader, models.reader_tokenizer),
    ):
        part = folder / name
        if part.exists():
            shutil.rmtree(part)
        part.mkdir(parents=True)
        model.config.write(part / "config.json")
        tokenizer.save(str(part / "tokenizer.json"), pretty=False)
        save_weights(part, model.state_dict(), torch.float16)
    origin = f"python -m services.question_answering.train --stop-after {steps}, {json.dumps(asdict(recipe))}"
    settings = ModelSettings(
        origin=origin, passages=passages, max_tokens=recipe.max_tokens, max_answer_tokens=24,
        passage_words=recipe.passage_words,
    )  # fmt: skip
    write_settings(folder, settings)


def _train_step(models: Models, optimizer: torch.optim.Optimizer, data: TrainingSet, step: int) -> dict[str, float]:
    recipe = models.recipe
    numbers = range(step * recipe.batch, (step + 1) * recipe.batch)
    for group in optimizer.param_groups:
        group["lr"] = recipe.rate(step)
    optimizer.zero_grad(set_to_none=True)
    losses = {}
    if step % recipe.retriever_every == 0:
        examples = [data.example(number) for number in numbers]
        losses["retriever_loss"] = _learn(models.retriever, models.retriever_loss(examples), recipe.clip)
    lesson = [data.imagined(number) for number in numbers]
    if step < recipe.single * recipe.steps:
        lesson = [replace(example, distractors=()) for example in lesson]
    losses["reader_loss"] = _learn(models.reader, models.reader_loss(lesson), recipe.clip)
    optimizer.step()
    return losses


def _learn(model: nn.Module, loss: Tensor, clip: float) -> float:
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    return loss.item()


def _save_state(out: Path, models: Models, optimizer: torch.optim.Optimizer, step: int) -> None:
    state = {
        "recipe": asdict(models.recipe), "step": step, "optimizer": optimizer.state_dict(),
        "retriever": models.retriever.state_dict(), "reader": models.reader.state_dict(),
    }  # fmt: skip
    partial = out / f"{_STATE}.partial"
    torch.save(state, partial)
    partial.replace(out / _STATE)  # atomic: a kill leaves the old checkpoint or the new one


def _resume(out: Path, models: Models, optimizer: torch.optim.Optimizer) -> int:
    """Load the last checkpoint, if any, and forget log lines after it; the number of steps done."""
    log = out / _LOG
    if not (out / _STATE).exists():
        log.write_text("")
        return 0
    state: dict[str, Any] = torch.load(out / _STATE, weights_only=True)
    recipe = asdict(models.recipe)
    if state["recipe"] != recipe:
        changed = sorted(name for name, value in recipe.items() if state["recipe"].get(name) != value)
        raise ValueError(f"{out} holds a run of another recipe ({', '.join(changed)} differ): give another --out")
    models.retriever.load_state_dict(state["retriever"])
    models.reader.load_state_dict(state["reader"])
    optimizer.load_state_dict(state["optimizer"])
    step = int(state["step"])
    kept = log.read_text().splitlines(keepends=True)[:step] if log.exists() else []
    log.write_text("".join(kept))
    return step


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains the bundled retriever and reader."""
    parser = argparse.ArgumentParser(prog="python -m services.question_answering.train", description=main.__doc__)
    parser.add_argument("--out", type=Path, required=True, help="directory of this run: checkpoint, loss.jsonl, model/")
    for name, field in Recipe.__dataclass_fields__.items():
        kind = {"int": int, "float": float}[str(field.type)]
        required = name == "steps"
        parser.add_argument(
            f"--{name.replace('_', '-')}", type=kind, required=required, default=None if required else field.default
        )
    parser.add_argument("--stop-after", type=int, help="end after this step, with the learning rates of a full run")
    options = vars(parser.parse_args(arguments))
    out, stop_after = options.pop("out"), options.pop("stop_after")
    try:
        train(out, Recipe(**options), stop_after=stop_after)
    except ValueError as error:
        parser.error(str(error))
    sys.stdout.write(f"model: {out / 'model'}\n")


if __name__ == "__main__":
    main()
