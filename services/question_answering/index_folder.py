"""An index on disk: passages, their vectors in faiss, and a manifest that says which encoder embedded them.

INDEX/index.json              the manifest; written last, so a folder without it is not finished
INDEX/passages.jsonl          one passage a line; passages.offsets.npy says where each begins
INDEX/vectors.faiss           the index that is searched
INDEX/vectors/NNNNN.npy       while it is being made: vectors in blocks, which a killed run finds again
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from services.question_answering.passage_index import (
    DEFAULT_CODE_BYTES,
    DEFAULT_PROBES,
    DEFAULT_REFINE,
    Kind,
    PassageIndex,
    Vectors,
    build,
    cells_for,
    sample_for,
)
from services.question_answering.passages import PassageStore
from toolformer.model_files.digests import DamagedError, check, record
from toolformer.model_files.whole import whole

MANIFEST_FILE: Final = "index.json"
VECTORS_FILE: Final = "vectors.faiss"
STORED_FILE: Final = "vectors.f16.npy"
BLOCKS_FOLDER: Final = "vectors"
FORMAT: Final = 1
_RECORDED: Final = ("passages.", "vectors.")
"""How the names of the files begin that are served."""


class UnusablePassagesError(Exception):
    """A folder is not a finished index, or one of another model; the message says why and what to do."""


class IndexManifest(BaseModel):
    """A finished index."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = FORMAT
    source: str
    """Where the passages come from: a digest, or a name."""
    retriever: str
    """`ModelSettings.retriever_digest` of the model whose vectors these are."""
    kind: Kind
    passages: int
    width: int


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """Passages and their vectors, open for searching."""

    manifest: IndexManifest
    vectors: PassageIndex
    passages: PassageStore


class Blocks:
    """Vectors in half precision, in numbered files; each is written whole or not at all."""

    def __init__(self, index: Path) -> None:
        self.folder = index / BLOCKS_FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)

    def has(self, number: int) -> bool:
        """Whether this block has been written."""
        return self._path(number).exists()

    def write(self, number: int, vectors: npt.NDArray[np.float16]) -> None:
        """Write a block (passages, width)."""
        with whole(self._path(number)) as partial, partial.open("wb") as file:
            np.save(file, vectors.astype(np.float16, copy=False))

    def __iter__(self) -> Iterator[npt.NDArray[np.float16]]:
        for path in sorted(self.folder.glob("[0-9]*[0-9].npy")):
            yield np.load(path, mmap_mode="r")

    def sample(self, wanted: int, count: int) -> Vectors:
        """About ``wanted`` of ``count`` vectors, evenly spaced."""
        every = max(1, count // wanted)
        parts, first = [], 0
        for block in self:
            parts.append(np.asarray(block[(-first) % every :: every], dtype=np.float32))
            first += len(block)
        return np.concatenate(parts)

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:05d}.npy"


def finish(index: Path, manifest: IndexManifest, *, code_bytes: int = DEFAULT_CODE_BYTES) -> None:
    """Make the faiss index of the blocks in ``index``, declare the folder finished and remove the blocks.

    Raises:
        IndexBuildError: the vectors do not fit the manifest, or cannot be indexed as asked.
    """
    blocks = Blocks(index)
    wanted = sample_for(cells_for(manifest.passages))
    sample = blocks.sample(wanted, manifest.passages) if manifest.kind == "ivf-pq" else np.empty((0, 0), np.float32)
    floats = (np.asarray(block, dtype=np.float32) for block in blocks)
    found = build(manifest.kind, manifest.width, manifest.passages, sample, floats, code_bytes=code_bytes)
    with whole(index / VECTORS_FILE) as partial:
        found.write(partial)
    if manifest.kind == "ivf-pq":
        _store(blocks, index / STORED_FILE, (manifest.passages, manifest.width))
    record(index, [path.name for path in index.iterdir() if path.is_file() and path.name.startswith(_RECORDED)])
    (index / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(blocks.folder)


def _store(blocks: Blocks, path: Path, shape: tuple[int, int]) -> None:
    """Put all blocks into one file that can be mapped."""
    stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=shape)
    first = 0
    for block in blocks:
        stored[first : first + len(block)] = block
        first += len(block)
    stored.flush()


def read_manifest(index: Path) -> IndexManifest:
    """The manifest of a finished index.

    Raises:
        UnusablePassagesError: there is none, it was not finished, or other code made it.
    """
    try:
        return IndexManifest.model_validate_json((index / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        raise UnusablePassagesError(
            f"{index} is not a finished index: it has no {MANIFEST_FILE}; make one with "
            "python -m services.question_answering.build_index"
        ) from None
    except (OSError, ValidationError) as error:
        raise UnusablePassagesError(
            f"{index / MANIFEST_FILE} cannot be read; remove {index} and make it again"
        ) from error


def open_index(
    index: Path, retriever: str, width: int, *, probes: int = DEFAULT_PROBES, refine: int = DEFAULT_REFINE
) -> OpenIndex:
    """The index in a folder, if it was made by the retriever of this digest.

    Args:
        index: the folder.
        retriever: the digest of the encoder that questions will be embedded with.
        width: of that encoder's vectors.
        probes: cells that an approximate index looks into.
        refine: how many times as many candidates an approximate index scores exactly.

    Raises:
        UnusablePassagesError: it is unfinished, broken, or another retriever's.
    """
    manifest = read_manifest(index)
    if manifest.retriever != retriever or manifest.width != width:
        raise UnusablePassagesError(f"{index} was made by another retriever than the model's; make it again")
    try:
        check(index)
        vectors = PassageIndex.read(index / VECTORS_FILE, probes=probes)
        passages = PassageStore(index)
        if manifest.kind == "ivf-pq":
            vectors.refine_with(np.load(index / STORED_FILE, mmap_mode="r"), refine)
    except (DamagedError, OSError, ValueError) as error:
        raise UnusablePassagesError(f"{index} is broken ({error}); remove it and make it again") from error
    if not len(vectors) == len(passages) == manifest.passages or vectors.width != width:
        passages.close()
        raise UnusablePassagesError(
            f"{index} holds {len(vectors):,} vectors for {len(passages):,} passages; its manifest says "
            f"{manifest.passages:,}: remove it and make it again"
        )
    return OpenIndex(manifest, vectors, passages)
