"""Atlas as its authors publish it: one checkpoint file, and an index in pairs of shards.

A checkpoint is ``model.pth.tar``: ``{"model": state dictionary, "opt": its options, ...}``. The state's names begin
with ``reader.`` (a T5) and ``retriever.contriever.`` (a BERT), or after query-side training with
``retriever.query_contriever.`` and ``retriever.passage_contriever.``; a checkpoint saved by several machines has
``module.`` after the first part. An index is ``embeddings.N.pt`` (half precision, width by passages) beside
``passages.N.pt`` (a pickled list of records). Sizes of the models are read off the weights themselves. Nothing in a
file is executed.
"""

from __future__ import annotations

import argparse
import pickle
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import torch
from torch import Tensor

from services.question_answering.bert import BertConfig
from services.question_answering.passages import MalformedPassageError, PagePassage
from services.question_answering.t5 import T5Config
from services.question_answering.weights import State

CHECKPOINT_FILE: Final = "model.pth.tar"
_HEAD_WIDTH: Final = 64
"""Of every published BERT; a state dictionary does not say how its width is split among heads."""
# Buffers that are no weights, copies of `shared`, and a bias that T5 has no use for.
_DROPPED: Final = re.compile(
    r"embeddings\.position_ids|pooler\..*|(?:en|de)coder\.embed_tokens\.weight"
    r"|decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
)


class PublishedError(ValueError):
    """A file is not what Atlas publishes; the message names it and what was expected."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint taken apart. ``passage_retriever`` is empty where one encoder serves both sides. ``passages`` and
    ``max_tokens`` are what it was trained with."""

    reader: State
    reader_config: T5Config
    retriever: State
    passage_retriever: State
    retriever_config: BertConfig
    passages: int
    max_tokens: int


def read_checkpoint(path: Path, *, heads: int | None = None) -> Checkpoint:
    """Take a checkpoint file apart; its tensors stay on disk until they are used.

    Args:
        path: the file.
        heads: attention heads of the retriever; by default one per 64 of its width.

    Raises:
        PublishedError: the file is missing, broken, or no checkpoint of Atlas.
    """
    content = _load(path)
    if not isinstance(content, dict) or not isinstance(content.get("model"), Mapping):
        raise PublishedError(f"{path} holds no state dictionary under 'model'; give a checkpoint of Atlas")
    state: State = {
        name.replace("retriever.module.", "retriever.").replace("reader.module.", "reader."): tensor
        for name, tensor in content["model"].items()
        if isinstance(tensor, Tensor)
    }
    reader = _part(state, "reader.")
    queries = _part(state, "retriever.contriever.") or _part(state, "retriever.query_contriever.")
    passages = _part(state, "retriever.passage_contriever.")
    for part, prefix in ((reader, "reader."), (queries, "retriever.")):
        if not part:
            raise PublishedError(
                f"{path} holds no tensors named {prefix}*; give a checkpoint of Atlas, with both parts"
            )
    options = vars(content["opt"]) if isinstance(content.get("opt"), argparse.Namespace) else {}
    try:
        config = _t5_config(reader)
        if config.tied:
            del reader["lm_head.weight"]
        return Checkpoint(
            reader=reader,
            reader_config=config,
            retriever=queries,
            passage_retriever=passages,
            retriever_config=_bert_config(queries, heads),
            passages=int(options.get("n_context") or 40),
            max_tokens=int(options.get("text_maxlength") or 512),
        )
    except KeyError as error:
        raise PublishedError(f"{path} lacks the tensor {error}; give a checkpoint of Atlas") from error


def index_shards(folder: Path) -> list[tuple[Path, Path]]:
    """The pairs of embeddings and passages in an index folder, in order.

    Raises:
        PublishedError: there are none, or one is missing in between.
    """
    count = len(list(folder.glob("embeddings.*.pt")))
    pairs = [(folder / f"embeddings.{number}.pt", folder / f"passages.{number}.pt") for number in range(count)]
    missing = [path.name for pair in pairs for path in pair if not path.is_file()]
    if not pairs or missing:
        lacking = missing[0] if missing else "embeddings.0.pt"
        raise PublishedError(f"{folder} lacks {lacking}; give a folder with all pairs embeddings.N.pt, passages.N.pt")
    return pairs


def read_embeddings(path: Path, width: int) -> Tensor:
    """The vectors (passages, width) of a shard.

    Raises:
        PublishedError: the file is broken, or holds vectors of another width.
    """
    vectors = _load(path)
    if not isinstance(vectors, Tensor) or vectors.dim() != 2 or vectors.shape[0] != width:
        found = tuple(vectors.shape) if isinstance(vectors, Tensor) else type(vectors).__name__
        raise PublishedError(f"{path} holds {found}; expected a tensor of {width} rows, one column a passage")
    return vectors.T


def read_passages(path: Path) -> list[PagePassage]:
    """The passages of a shard.

    Raises:
        PublishedError: the file is broken, or its records are no passages.
    """
    try:
        with path.open("rb") as source:
            records = _PlainUnpickler(source).load()
    except (OSError, pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError) as error:
        raise PublishedError(f"{path} cannot be read ({error})") from error
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise PublishedError(f"{path} holds no list of records")
    try:
        return [PagePassage.of_record(record) for record in records]
    except MalformedPassageError as error:
        raise PublishedError(f"{path}: {error}") from error


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles lists, dictionaries, texts and numbers; refuses anything that would name code."""

    def __init__(self, source: BinaryIO) -> None:
        super().__init__(source)

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names code, {module}.{name}, which passages have no use for")


def _load(path: Path) -> Any:
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except FileNotFoundError:
        raise PublishedError(f"there is no {path}") from None
    except (RuntimeError, pickle.UnpicklingError, EOFError, OSError, ValueError) as error:
        raise PublishedError(f"{path} cannot be read ({str(error).splitlines()[0]}); download it again") from error


def _part(state: State, prefix: str) -> State:
    part = {name.removeprefix(prefix): tensor for name, tensor in state.items() if name.startswith(prefix)}
    return {name: tensor for name, tensor in part.items() if not _DROPPED.fullmatch(name)}


def _layers(state: State, pattern: str) -> int:
    return len({found.group(1) for name in state if (found := re.match(pattern, name))})


def _t5_config(state: State) -> T5Config:
    vocab_size, width = state["shared.weight"].shape
    buckets, heads = state["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"].shape
    gated = "encoder.block.0.layer.1.DenseReluDense.wi_0.weight" in state
    inner = state["encoder.block.0.layer.1.DenseReluDense.wo.weight"].shape[1]
    head = state.get("lm_head.weight")
    # Loading a version 1.0 model leaves a copy of the embeddings as its output; 1.1 has an output of its own.
    return T5Config(
        vocab_size=vocab_size,
        width=width,
        head_width=state["encoder.block.0.layer.0.SelfAttention.q.weight"].shape[0] // heads,
        inner_width=inner,
        encoder_layers=_layers(state, r"encoder\.block\.(\d+)\."),
        decoder_layers=_layers(state, r"decoder\.block\.(\d+)\."),
        heads=heads,
        buckets=buckets,
        feed_forward="gated-gelu" if gated else "relu",
        tied=head is None or torch.equal(head, state["shared.weight"]),
    )


def _bert_config(state: State, heads: int | None) -> BertConfig:
    vocab_size, width = state["embeddings.word_embeddings.weight"].shape
    return BertConfig(
        vocab_size=vocab_size,
        width=width,
        inner_width=state["encoder.layer.0.intermediate.dense.weight"].shape[0],
        layers=_layers(state, r"encoder\.layer\.(\d+)\."),
        heads=heads or max(1, width // _HEAD_WIDTH),
        positions=state["embeddings.position_embeddings.weight"].shape[0],
        segments=state["embeddings.token_type_embeddings.weight"].shape[0],
        uncentred_norm=True,
    )
