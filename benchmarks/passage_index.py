"""Exact against approximate search over passage vectors: recall@20, memory, time.

    python -m benchmarks.passage_index --vectors 500000

The vectors are generated: clusters in a space of fewer dimensions, turned into 768 with some noise, as embeddings of
text lie near a smaller space; a question is a passage's vector moved a little. Recall is the share of the exact index's
twenty best that the approximate one also has among its twenty best; `n times` means that n times twenty candidates were
scored again with their exact vectors, from a mapped file.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from services.question_answering.passage_index import PassageIndex, StoredVectors, Vectors, cells_for, sample_for

WIDTH = 768
INNER_WIDTH = 96
CLUSTERS = 2_000
BLOCK = 50_000
QUESTIONS = 300
K = 20
PROBES = (4, 16, 64)
REFINE = (1, 5, 20)
PUBLISHED = 28_000_000


@dataclass(frozen=True)
class Generated:
    """Vectors that can be drawn block by block, the same ones again for the same seed."""

    count: int
    seed: int = 0

    def blocks(self) -> Iterator[Vectors]:
        """All vectors, in order."""
        rng = np.random.default_rng(self.seed)
        centres = rng.standard_normal((CLUSTERS, INNER_WIDTH)).astype(np.float32)
        turn = (rng.standard_normal((INNER_WIDTH, WIDTH)) / np.sqrt(INNER_WIDTH)).astype(np.float32)
        for first in range(0, self.count, BLOCK):
            size = min(BLOCK, self.count - first)
            inner = centres[rng.integers(CLUSTERS, size=size)]
            inner += 0.7 * rng.standard_normal((size, INNER_WIDTH), dtype=np.float32)
            yield inner @ turn + 0.1 * rng.standard_normal((size, WIDTH), dtype=np.float32)

    def questions(self) -> Vectors:
        """Vectors a little off passages of the first block."""
        rng = np.random.default_rng(self.seed + 1)
        passages = next(self.blocks())[:QUESTIONS]
        return passages + 0.5 * rng.standard_normal(passages.shape, dtype=np.float32)

    def sample(self, wanted: int) -> Vectors:
        """Evenly spaced vectors, to train on."""
        every = max(1, self.count // wanted)
        return np.concatenate([block[::every] for block in self.blocks()])


def recall(found: npt.NDArray[np.int64], exact: npt.NDArray[np.int64]) -> float:
    """The share of ``exact`` rows' entries that the same row of ``found`` has."""
    shared = [len(set(ours) & set(theirs)) for ours, theirs in zip(found.tolist(), exact.tolist(), strict=True)]
    return sum(shared) / exact.size


def measure(index: PassageIndex, questions: Vectors) -> tuple[npt.NDArray[np.int64], float]:
    """The found numbers and the milliseconds a question takes when asked alone."""
    _, found = index.search(questions, K)
    alone = questions[:100]
    began = time.perf_counter()
    for row in range(len(alone)):
        index.search(alone[row : row + 1], K)
    return found, (time.perf_counter() - began) / len(alone) * 1_000


def store(generated: Generated, path: Path) -> StoredVectors:
    """The vectors in half precision, in a file that is mapped."""
    stored = np.lib.format.open_memmap(path, mode="w+", dtype=np.float16, shape=(generated.count, WIDTH))
    for number, block in enumerate(generated.blocks()):
        stored[number * BLOCK : number * BLOCK + len(block)] = block
    return stored


def size_of(index: PassageIndex) -> int:
    """Bytes of the index as written; in memory it takes about the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index"
        index.write(path)
        return path.stat().st_size


def main() -> None:
    """Prints a table and writes benchmarks/results/passage_index.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.passage_index", description=__doc__)
    parser.add_argument("--vectors", type=int, default=500_000)
    parser.add_argument("--code-bytes", type=int, default=64)
    parser.add_argument("--cells", type=int, help="by default as many as the service would take")
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    generated = Generated(options.vectors)
    questions = generated.questions()

    began = time.perf_counter()
    exact = PassageIndex.exact(WIDTH)
    for block in generated.blocks():
        exact.add(block)
    exact_seconds = time.perf_counter() - began
    best, exact_ms = measure(exact, questions)
    exact_bytes = size_of(exact)
    del exact

    cells = options.cells or cells_for(options.vectors)
    began = time.perf_counter()
    approximate = PassageIndex.ivf_pq(
        generated.sample(sample_for(cells)), options.vectors, code_bytes=options.code_bytes, cells=cells
    )
    trained_seconds = time.perf_counter() - began
    for block in generated.blocks():
        approximate.add(block)
    built_seconds = time.perf_counter() - began
    approximate_bytes = size_of(approximate)
    per_vector = options.code_bytes + 8
    rows: list[dict[str, Any]] = [
        {"index": "exact", "recall@20": 1.0, "ms a question": exact_ms, "bytes a vector": exact_bytes / options.vectors}
    ]
    with tempfile.TemporaryDirectory() as folder:
        stored = store(generated, Path(folder) / "vectors.npy")
        for refine, probes in itertools.product(REFINE, PROBES):
            approximate.probe(probes)
            if refine > 1:
                approximate.refine_with(stored, refine)
            found, milliseconds = measure(approximate, questions)
            rows.append(
                {
                    "index": f"ivf-pq, {probes} of {cells} cells, {refine} times",
                    "recall@20": recall(found, best),
                    "ms a question": milliseconds,
                    "bytes a vector": approximate_bytes / options.vectors,
                }
            )
        del stored
    report = {
        "vectors": options.vectors,
        "width": WIDTH,
        "rows": rows,
        "exact built in s": exact_seconds,
        "ivf-pq trained in s": trained_seconds,
        "ivf-pq built in s": built_seconds,
        "exact GB": exact_bytes / 1e9,
        "ivf-pq GB": approximate_bytes / 1e9,
        "exact GB at 28 million": PUBLISHED * WIDTH * 2 / 1e9,
        "ivf-pq GB at 28 million": PUBLISHED * per_vector / 1e9,
        "threads": 1,
        "machine": f"{platform.machine()}, faiss {faiss.__version__}",
    }
    for row in rows:
        print(
            f"{row['index']:36}  recall@20 {row['recall@20']:.3f}  {row['ms a question']:8.2f} ms a question  "
            f"{row['bytes a vector']:7.1f} bytes a vector"
        )
    results = Path(__file__).parent / "results"
    results.mkdir(exist_ok=True)
    (results / "passage_index.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({name: value for name, value in report.items() if name != "rows"}, indent=2))


if __name__ == "__main__":
    main()
