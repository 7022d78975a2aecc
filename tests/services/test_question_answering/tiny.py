"""Tiny random models of the real architectures, the same in every run, and passages to ask them about."""

import functools
import json
from pathlib import Path

import torch
from tokenizers import Tokenizer

from services.question_answering import vocabulary
from services.question_answering.bert import Bert, BertConfig
from services.question_answering.build_index import Source, ensure_index
from services.question_answering.checkpoint import (
    PASSAGE_RETRIEVER,
    READER,
    RETRIEVER,
    Model,
    ModelSettings,
    load_model,
    write_settings,
)
from services.question_answering.formats import prompt, reader_text
from services.question_answering.passages import PagePassage
from services.question_answering.t5 import T5, T5Config
from services.question_answering.weights import save_weights

PLACES = ("Ljubljana", "Maribor", "Sidi Kacem", "Tieling", "Battambang", "Russas", "Qoryooley", "Farakka")
PASSAGES = tuple(
    PagePassage(f"{number}-0", place, f"{place} is a city whose population is {number * 12_345 + 678:,}.")
    for number, place in enumerate(PLACES)
)
QUESTIONS = tuple(f"What is the population of {place}?" for place in PLACES)
MAX_TOKENS = 96


@functools.cache
def tokenizers() -> tuple[Tokenizer, Tokenizer]:
    """The retriever's and the reader's."""
    texts = [reader_text(prompt(asked), passage) for asked, passage in zip(QUESTIONS, PASSAGES, strict=True)]
    return vocabulary.learn(texts * 3, vocab_size=500)


def bert_config(*, uncentred_norm: bool = False) -> BertConfig:
    size = tokenizers()[0].get_vocab_size()
    return BertConfig(size, 24, 40, 2, 3, positions=MAX_TOKENS, segments=2, uncentred_norm=uncentred_norm)


def t5_config(*, tied: bool = False, feed_forward: str = "gated-gelu") -> T5Config:
    size = tokenizers()[1].get_vocab_size()
    return T5Config(size, 32, 8, 48, 3, 2, 5, tied=tied, feed_forward=feed_forward)


@torch.no_grad()
def lively_bert(seed: int = 0, *, uncentred_norm: bool = False) -> Bert:
    """Weights large enough that every part of the computation shows in the result."""
    bert = Bert(bert_config(uncentred_norm=uncentred_norm)).eval()
    torch.manual_seed(seed)
    for parameter in bert.parameters():
        parameter.normal_(0.0, 0.3)
    return bert


@torch.no_grad()
def lively_t5(seed: int = 0, *, tied: bool = False, feed_forward: str = "gated-gelu") -> T5:
    t5 = T5(t5_config(tied=tied, feed_forward=feed_forward)).eval()
    torch.manual_seed(seed)
    for parameter in t5.parameters():
        parameter.normal_(1.0 if parameter.dim() == 1 else 0.0, 0.3)
    return t5


def write_model(folder: Path, *, untied: bool = False, seed: int = 0) -> ModelSettings:
    """A model folder as the service reads it."""
    retriever_tokenizer, reader_tokenizer = tokenizers()
    parts: list[tuple[str, Bert | T5, Tokenizer]] = [
        (RETRIEVER, lively_bert(seed), retriever_tokenizer),
        (READER, lively_t5(seed), reader_tokenizer),
    ]
    if untied:
        parts.append((PASSAGE_RETRIEVER, lively_bert(seed + 1), retriever_tokenizer))
    for name, model, tokenizer in parts:
        (folder / name).mkdir(parents=True)
        model.config.write(folder / name / "config.json")
        tokenizer.save(str(folder / name / "tokenizer.json"))
        save_weights(folder / name, model.state_dict(), torch.float32)
    settings = ModelSettings(origin="tests", passages=3, max_tokens=MAX_TOKENS, max_answer_tokens=8)
    return write_settings(folder, settings)


def write_passages_file(path: Path) -> Path:
    """`PASSAGES` as Atlas' passage file."""
    path.write_text("".join(json.dumps(passage.record()) + "\n" for passage in PASSAGES))
    return path


def model_and_index(folder: Path) -> tuple[Path, Path, Model]:
    """A model and an index of `PASSAGES` in ``folder``, and the loaded model."""
    write_model(folder / "model")
    model = load_model(folder / "model")
    ensure_index(folder / "index", model, Source(write_passages_file(folder / "passages.jsonl"), pages=False))
    return folder / "model", folder / "index", model
