"""Converts a published Atlas checkpoint and its index into the layout that the service loads.

    python -m services.question_answering.convert --checkpoint DIR --reader-tokenizer DIR --retriever-tokenizer DIR \\
        --embeddings DIR --kind ivf-pq --out DIR

It makes ``OUT/model`` and, with ``--embeddings``, ``OUT/index``; says beforehand what disk and memory that takes; may
be killed at any moment and started again with the same command; and checks at the end that every file is what was
written and that the index belongs to the model, by embedding some of its passages again.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from tokenizers import Tokenizer

from services.question_answering.bert import BertConfig
from services.question_answering.checkpoint import (
    PASSAGE_RETRIEVER,
    READER,
    RETRIEVER,
    SETTINGS_FILE,
    Model,
    ModelError,
    ModelSettings,
    Precision,
    load_model,
    verify,
    write_settings,
)
from services.question_answering.index_folder import MANIFEST_FILE, Blocks, IndexManifest, finish
from services.question_answering.passage_index import (
    DEFAULT_CODE_BYTES,
    KINDS,
    Kind,
    VectorIndexError,
    cells_for,
    sample_for,
)
from services.question_answering.passages import PagePassage, PassageStore, write_passages
from services.question_answering.published import (
    CHECKPOINT_FILE,
    Checkpoint,
    PublishedError,
    index_shards,
    read_checkpoint,
    read_embeddings,
    read_passages,
)
from services.question_answering.t5 import T5Config
from services.question_answering.weights import State, save_weights

MAX_ANSWER_TOKENS: Final = 32
"""As Atlas decodes for Natural Questions."""
_CHECKED_PASSAGES: Final = 8
_ALIKE: Final = 0.99
"""Cosine of a published vector and ours for the same passage: half precision costs it less than a thousandth."""

logger = logging.getLogger(__name__)


class AtlasConversionError(Exception):
    """The conversion cannot be done; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a conversion takes, in bytes."""

    disk: int
    memory: int

    def __str__(self) -> str:
        return f"{self.disk / 1e9:.1f} GB of disk and {self.memory / 1e9:.1f} GB of memory"


def model_needs(checkpoint: Checkpoint, precision: Precision) -> Needs:
    """Disk for the converted model; memory for one tensor of it at a time and one shard of output."""
    size = getattr(torch, precision).itemsize
    parts = (checkpoint.reader, checkpoint.retriever, checkpoint.passage_retriever)
    disk = sum(tensor.numel() * size for part in parts for tensor in part.values())
    return Needs(disk, min(disk, 5 << 30))


def index_needs(shards: Sequence[tuple[Path, Path]], kind: Kind, width: int) -> Needs:
    """Disk for vectors in blocks, the finished index and the passages; memory for the finished index and training."""
    vectors = sum(embeddings.stat().st_size for embeddings, _ in shards)
    passages = sum(records.stat().st_size for _, records in shards)
    count = vectors // (2 * width)
    # The exact vectors stay beside an approximate index, for scoring its candidates again.
    finished = vectors if kind == "exact" else count * (DEFAULT_CODE_BYTES + 8)
    training = 0 if kind == "exact" else sample_for(cells_for(count)) * width * 8
    stored = 0 if kind == "exact" else vectors
    return Needs(vectors + finished + stored + 2 * passages, finished + training + (2 << 30))


def convert_model(
    checkpoint: Checkpoint, out: Path, tokenizers: Mapping[str, Path], precision: Precision
) -> ModelSettings:
    """Write ``checkpoint`` into ``out``. Files that an earlier, killed run finished are kept.

    Args:
        checkpoint: what to convert.
        out: the model's folder.
        tokenizers: folders with the tokenizers of `READER` and `RETRIEVER`.
        precision: to store weights in.

    Raises:
        AtlasConversionError: a tokenizer does not fit its model.
    """
    parts: list[tuple[str, State, T5Config | BertConfig]] = [
        (RETRIEVER, checkpoint.retriever, checkpoint.retriever_config),
        (READER, checkpoint.reader, checkpoint.reader_config),
    ]
    if checkpoint.passage_retriever:
        parts.append((PASSAGE_RETRIEVER, checkpoint.passage_retriever, checkpoint.retriever_config))
    for name, state, config in parts:
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        config.write(folder / "config.json")
        tokenizer = read_tokenizer(tokenizers[READER if name == READER else RETRIEVER])
        if tokenizer.get_vocab_size() > config.vocab_size:
            raise AtlasConversionError(
                f"the {name} has embeddings for {config.vocab_size:,} tokens, its tokenizer "
                f"{tokenizer.get_vocab_size():,}: give the one it was published with"
            )
        tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
        save_weights(folder, state, getattr(torch, precision))
        logger.info("wrote %s", folder)
    return write_settings(
        out,
        ModelSettings(
            origin="a published Atlas checkpoint",
            passages=checkpoint.passages,
            max_tokens=checkpoint.max_tokens,
            max_answer_tokens=MAX_ANSWER_TOKENS,
        ),
    )


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer in a folder as Hugging Face publishes one: ``tokenizer.json``, or files that transformers can make
    one of (T5's ``spiece.model`` then also needs the package sentencepiece).

    Raises:
        AtlasConversionError: there is none.
    """
    if (folder / "tokenizer.json").is_file():
        tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        return tokenizer
    try:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True).backend_tokenizer
    except Exception as error:  # the library raises whatever its parts do
        raise AtlasConversionError(f"{folder} holds no tokenizer.json, and none can be made of it ({error})") from error
    return tokenizer


def convert_index(
    shards: Sequence[tuple[Path, Path]], model: Model, out: Path, kind: Kind, *, code_bytes: int = DEFAULT_CODE_BYTES
) -> IndexManifest:
    """Write a published index into ``out``. Vectors that an earlier, killed run wrote are kept.

    Raises:
        PublishedError: a shard is broken.
        AtlasConversionError: a shard's vectors and passages do not match, or are another model's.
        VectorIndexError: there are too few vectors for an approximate index.
    """
    out.mkdir(parents=True, exist_ok=True)
    width = model.retriever.width
    count = write_passages(out, _converted(shards, Blocks(out), width))
    require_same_model(model, out)
    manifest = IndexManifest(
        source=f"{len(shards)} published shards",
        retriever=model.settings.retriever_digest,
        kind=kind,
        passages=count,
        width=width,
    )
    finish(out, manifest, code_bytes=code_bytes)
    return manifest


def _converted(shards: Sequence[tuple[Path, Path]], blocks: Blocks, width: int) -> Iterator[PagePassage]:
    """The passages of all shards; on the way their vectors go into ``blocks``."""
    for number, (embeddings, records) in enumerate(shards):
        passages, vectors = read_passages(records), read_embeddings(embeddings, width)
        if len(passages) != len(vectors):
            message = f"{embeddings} has {len(vectors):,} vectors, {records} {len(passages):,} passages"
            raise AtlasConversionError(message)
        yield from passages
        if not blocks.has(number):
            blocks.write(number, vectors.to(torch.float16).numpy())
        logger.info("shard %d of %d: %d passages", number + 1, len(shards), len(passages))


def require_same_model(model: Model, index: Path) -> None:
    """Pass if the vectors in an unfinished index are what ``model`` makes of its passages.

    Raises:
        AtlasConversionError: they are not.
    """
    store = PassageStore(index)
    try:
        published = torch.cat(
            [torch.from_numpy(block[:_CHECKED_PASSAGES].copy()) for block in Blocks(index)][:1]
        ).float()
        own = model.retriever.embed_passages([store[number] for number in range(len(published))])
    finally:
        store.close()
    alike = torch.nn.functional.cosine_similarity(published, own).min().item()
    logger.info("the least cosine of published and own vectors of %d passages: %.5f", len(own), alike)
    if not alike >= _ALIKE:
        message = "the embeddings are another model's: the same passages have other vectors here"
        raise AtlasConversionError(f"{message} (cosine {alike:.3f}); give the index published with this checkpoint")


def main(arguments: Sequence[str] | None = None) -> None:
    """Converts a published Atlas checkpoint and its index into the layout that the service loads."""
    parser = argparse.ArgumentParser(prog="python -m services.question_answering.convert", description=main.__doc__)
    parser.add_argument("--checkpoint", type=Path, required=True, help=f"folder with {CHECKPOINT_FILE}")
    parser.add_argument("--reader-tokenizer", type=Path, required=True, help="folder of T5's tokenizer")
    parser.add_argument("--retriever-tokenizer", type=Path, required=True, help="folder of Contriever's tokenizer")
    parser.add_argument("--embeddings", type=Path, help="folder with embeddings.N.pt and passages.N.pt")
    parser.add_argument("--kind", choices=KINDS, default="exact", help="of the index (default: exact)")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32", help="of stored weights")
    parser.add_argument("--retriever-heads", type=int, help="attention heads; by default one per 64 of its width")
    parser.add_argument(
        "--code-bytes", type=int, default=DEFAULT_CODE_BYTES, help="a vector's bytes in an ivf-pq index"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder to make model/ and index/ in")
    options = parser.parse_args(arguments)
    logging.basicConfig(level="INFO", format="question_answering: %(message)s")
    try:
        report = convert(options)
    except (AtlasConversionError, PublishedError, ModelError, VectorIndexError, OSError) as error:
        parser.exit(1, f"question_answering: {error}\n")
    sys.stdout.write(json.dumps(report, indent=2) + "\n")


def convert(options: argparse.Namespace) -> dict[str, object]:
    """Do what `main` was asked; a report for people and scripts.

    Raises:
        AtlasConversionError, PublishedError, ModelError, VectorIndexError: see the parts.
    """
    source = options.checkpoint / CHECKPOINT_FILE
    checkpoint = read_checkpoint(source, heads=options.retriever_heads)
    shards = index_shards(options.embeddings) if options.embeddings else []
    needs = model_needs(checkpoint, options.precision)
    logger.info("the model takes %s", needs)
    if shards:
        of_index = index_needs(shards, options.kind, checkpoint.retriever_config.width)
        logger.info("the index takes %s", of_index)
        needs = Needs(needs.disk + of_index.disk, max(needs.memory, of_index.memory))
    options.out.mkdir(parents=True, exist_ok=True)
    _require_same_request(options, source)
    model_folder, index_folder = options.out / "model", options.out / "index"
    free = shutil.disk_usage(options.out).free
    if not (model_folder / SETTINGS_FILE).exists() and free < needs.disk:
        raise AtlasConversionError(f"{options.out} has {free / 1e9:.1f} GB free; the conversion takes {needs}")

    if not (model_folder / SETTINGS_FILE).exists():
        tokenizers = {READER: options.reader_tokenizer, RETRIEVER: options.retriever_tokenizer}
        convert_model(checkpoint, model_folder, tokenizers, options.precision)
    settings = verify(model_folder)
    report: dict[str, object] = {"model": str(model_folder), "files": len(settings.files), "verified": True}
    if shards:
        if not (index_folder / MANIFEST_FILE).exists():
            model = load_model(model_folder, with_reader=False)
            convert_index(shards, model, index_folder, options.kind, code_bytes=options.code_bytes)
        report |= {"index": str(index_folder), "kind": options.kind}
    return report


def _require_same_request(options: argparse.Namespace, source: Path) -> None:
    """Only the same conversion may go on where one was begun."""
    asked = {
        "checkpoint": [str(source.resolve()), source.stat().st_size, source.stat().st_mtime_ns],
        "embeddings": str(options.embeddings.resolve()) if options.embeddings else None,
        "kind": options.kind,
        "precision": options.precision,
        "code_bytes": options.code_bytes,
    }
    begun = options.out / "conversion.json"
    if begun.exists() and json.loads(begun.read_text(encoding="utf-8")) != asked:
        raise AtlasConversionError(
            f"{options.out} holds another conversion, or part of one; give another --out, or remove it"
        )
    begun.write_text(json.dumps(asked), encoding="utf-8")


if __name__ == "__main__":
    main()
