"""The passages' vectors in faiss: the nearest by dot product, exactly or nearly.

``exact`` holds every vector in half precision, as Atlas' published embeddings are. ``ivf-pq`` sorts vectors into cells
and holds each as a code of a few bytes (Jégou et al., 2011): 28 million passages then fit into a few gigabytes of
memory. Codes confuse near neighbours, so several times as many candidates are taken as are asked for and scored again
with their exact vectors, which stay on disk (README.md has measured figures).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import faiss
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
StoredVectors = npt.NDArray[np.float16]
"""Vectors in half precision, usually a file mapped into memory."""
Kind = Literal["exact", "ivf-pq"]
KINDS: Final[tuple[Kind, ...]] = ("exact", "ivf-pq")

DEFAULT_CODE_BYTES: Final = 64
DEFAULT_PROBES: Final = 64
DEFAULT_REFINE: Final = 20
_POINTS_PER_CELL: Final = 40
"""Training vectors a cell; faiss asks for 39."""


class VectorIndexError(ValueError):
    """The vectors cannot be indexed as asked; the message says why and what to do."""


class PassageIndex:
    """Vectors by passage number. `search` may run in several threads at once; `add` may not."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self._stored: StoredVectors | None = None
        self._refine = 1

    @classmethod
    def exact(cls, width: int) -> PassageIndex:
        """An empty exact index of vectors of this width."""
        quantiser = faiss.ScalarQuantizer.QT_fp16
        return cls(faiss.IndexScalarQuantizer(width, quantiser, faiss.METRIC_INNER_PRODUCT))

    @classmethod
    def ivf_pq(
        cls, sample: Vectors, expected: int, *, code_bytes: int = DEFAULT_CODE_BYTES, cells: int | None = None
    ) -> PassageIndex:
        """An empty approximate index, trained on a sample of the vectors to come.

        Args:
            sample: vectors (sample, width) drawn evenly from all.
            expected: how many vectors are to come.
            code_bytes: bytes a vector is held in; it divides the vectors' width.
            cells: into how many cells vectors are sorted; by default about four times the square root of ``expected``.

        Raises:
            VectorIndexError: too few samples, or ``code_bytes`` does not divide the width.
        """
        width = sample.shape[1]
        if width % code_bytes:
            raise VectorIndexError(f"code_bytes is {code_bytes}; it must divide the vectors' width {width}")
        cells = cells or cells_for(expected)
        needed = sample_for(cells)
        if len(sample) < min(needed, expected) or len(sample) < 256:
            raise VectorIndexError(f"{len(sample):,} vectors are too few to train {cells:,} cells; give {needed:,}")
        index = faiss.index_factory(width, f"IVF{cells},PQ{code_bytes}", faiss.METRIC_INNER_PRODUCT)
        index.train(np.ascontiguousarray(sample, dtype=np.float32))
        return cls(index)

    @classmethod
    def read(cls, path: Path, *, probes: int = DEFAULT_PROBES) -> PassageIndex:
        """The index in a file; ``probes`` cells are searched where it has any.

        Raises:
            OSError: there is no such file.
            ValueError: it is no faiss index.
        """
        with path.open("rb"):
            pass  # faiss reports a missing file as a failure of its own code
        try:
            found = cls(faiss.read_index(str(path)))
        except RuntimeError as error:
            raise ValueError(f"{path} is not a faiss index: {str(error).splitlines()[-1]}") from error
        found.probe(probes)
        return found

    @property
    def width(self) -> int:
        """Of its vectors."""
        return int(self._index.d)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, vectors: Vectors) -> None:
        """Append vectors (any number, width); their numbers go on from the last."""
        self._index.add(np.ascontiguousarray(vectors, dtype=np.float32))

    def probe(self, cells: int) -> None:
        """How many cells a search looks into: more find more, and take longer. An exact index has none."""
        if (inverted := faiss.try_extract_index_ivf(self._index)) is not None:
            inverted.nprobe = cells

    def refine_with(self, stored: StoredVectors, times: int = DEFAULT_REFINE) -> None:
        """Score ``times`` as many candidates as are asked for again, with the vectors ``stored`` (passages, width)."""
        self._stored, self._refine = stored, times

    def search(self, questions: Vectors, k: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Scores and passage numbers (questions, k), best first; -1 stands where there are no more passages."""
        asked = np.ascontiguousarray(questions, dtype=np.float32)
        scores, numbers = self._index.search(asked, k * self._refine)
        if self._stored is None:
            return scores, numbers
        candidates = self._stored[numbers.clip(min=0)].astype(np.float32)
        scores = np.einsum("qw,qcw->qc", asked, candidates)
        scores[numbers < 0] = -np.inf
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(scores, best, axis=1), np.take_along_axis(numbers, best, axis=1)

    def write(self, path: Path) -> None:
        """Write it into a file."""
        faiss.write_index(self._index, str(path))


def build(
    kind: Kind, width: int, count: int, sample: Vectors, blocks: Iterable[Vectors], *, code_bytes: int
) -> PassageIndex:
    """The index of ``count`` vectors that come in ``blocks``; ``sample`` trains an approximate one.

    Raises:
        VectorIndexError: see `PassageIndex.ivf_pq`; or there are more or fewer vectors than said.
    """
    index = PassageIndex.exact(width) if kind == "exact" else PassageIndex.ivf_pq(sample, count, code_bytes=code_bytes)
    for block in blocks:
        index.add(block)
    if len(index) != count:
        raise VectorIndexError(f"there are {len(index):,} vectors for {count:,} passages")
    return index


def cells_for(count: int) -> int:
    """A usual number of cells for ``count`` vectors: four times the square root, as a power of two."""
    return int(2 ** round(math.log2(max(4.0, 4 * math.sqrt(count)))))


def sample_for(cells: int) -> int:
    """How many vectors training that many cells takes."""
    return max(256 * _POINTS_PER_CELL, cells * _POINTS_PER_CELL)
