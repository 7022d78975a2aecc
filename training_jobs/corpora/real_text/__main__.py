"""Make a base model's corpus of real text: read the sources, mix them, learn the vocabulary, encode.

    python -m training_jobs.corpora.real_text --sources SOURCES --exams DATA --pairs train.tsv --out CORPUS --tokens 120
    python -m training_jobs.pretrain --corpus CORPUS --out RUN --steps 30000 --width 320 --layers 6 --heads 5

``--tokens`` counts millions. A share of it goes to each source by ``MIXTURE``; short sources are read again. The same
seed and the same files give the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from rich.console import Console
from tokenizers import Tokenizer

from demo_world.splits import stable_hash
from training_jobs.corpora.real_text import generated_part as generated
from training_jobs.corpora.real_text.overlap import Exams
from training_jobs.corpora.real_text.sources import SOURCES
from training_jobs.pretrain.rows import Tokens, write_manifest
from training_jobs.pretrain.tokenizer import END_OF_TEXT, save_tokenizer, train_tokenizer
from training_jobs.runner.progress import StageProgress

MIXTURE: Final = {
    "encyclopedia": 0.48, "news": 0.06, "stories": 0.02, "definitions": 0.04, "reading": 0.09, "trivia": 0.04,
    "grade school": 0.06, "one step": 0.02, "problems": 0.06, "sums": 0.02, "exercises": 0.004, "countries": 0.02,
    "dated": 0.001, "days": 0.015, "foreign": 0.04, "world": 0.03,
}  # fmt: skip
"""The share of tokens of each source."""
_VOCABULARY_CHARACTERS: Final = 20_000_000
"""Merges settle after so much text, of all sources by their shares."""
_BATCH: Final = 2_000


def texts_of(source: str, sources: Path, pairs: Path, exams: Exams, seed: int) -> Iterator[str]:
    """The texts of one source, read again and again."""
    round_ = 0
    while True:
        rng = random.Random(stable_hash("real text", source, str(seed), str(round_)))
        round_ += 1
        if source == "problems":
            yield from generated.problems(rng, _names(sources), _things(sources))
        elif source == "sums":
            yield from generated.sums(rng)
        elif source == "days":
            yield from generated.days(rng)
        elif source == "foreign":
            yield from generated.foreign(rng, pairs)
        elif source == "world":
            yield from generated.world(seed + round_)
        else:
            yield from SOURCES[source](sources, exams, rng)


def make(
    sources: Path, exams: Exams, pairs: Path, out: Path, *, tokens: float, vocabulary: int, seed: int
) -> dict[str, Any]:
    """Make the corpus in ``out`` and return its manifest. ``tokens`` are to be read in all.

    Raises:
        OSError: if a source is not there.
    """
    out.mkdir(parents=True, exist_ok=True)

    def texts(source: str) -> Iterator[str]:
        return texts_of(source, sources, pairs, exams, seed)

    tokenizer = train_tokenizer(
        (one for source, share in MIXTURE.items() for one in _up_to(texts(source), share * _VOCABULARY_CHARACTERS)),
        vocab_size=vocabulary,
    )
    save_tokenizer(tokenizer, out)
    rows: list[np.ndarray[Any, Any]] = []
    counts: dict[str, dict[str, int]] = {}
    with StageProgress("encode", int(tokens), 0, Console(stderr=True), unit="tokens") as progress:
        for source, share in MIXTURE.items():
            counts[source] = {"texts": 0, "characters": 0, "tokens": 0}
            of_source = texts(source)
            while counts[source]["tokens"] < share * tokens:
                batch = list(islice(of_source, _BATCH))
                encoded = _encoded(tokenizer, batch, seed)
                made = sum(map(len, encoded))
                for field, number in (("texts", len(batch)), ("characters", sum(map(len, batch))), ("tokens", made)):
                    counts[source][field] += number
                rows += encoded
                progress.advance(made, {})
    starts = torch.tensor([0, *map(len, rows)]).cumsum(0)
    ids = torch.from_numpy(np.concatenate(rows))
    Tokens(ids, torch.ones(len(ids), dtype=torch.bool), starts).save(out)
    about = {
        "seed": seed, "vocabulary": tokenizer.get_vocab_size(), "documents": len(rows), "tokens": len(ids),
        "sources": counts,
    }  # fmt: skip
    return write_manifest(out, about)


def _encoded(tokenizer: Tokenizer, texts: Sequence[str], seed: int) -> list[np.ndarray[Any, Any]]:
    """Ids of each text, closed by the end-of-text mark; half begin with it too, as texts that are scored do."""
    end = tokenizer.token_to_id(END_OF_TEXT)
    found = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    begins = (stable_hash("begin", str(seed), text) % 2 == 0 for text in texts)
    return [
        np.array([end, *one.ids, end] if begin else [*one.ids, end], dtype=np.int32)
        for one, begin in zip(found, begins, strict=True)
    ]


def _up_to(texts: Iterator[str], characters: float) -> Iterator[str]:
    for text in texts:
        characters -= len(text)
        if characters < 0:
            return
        yield text


def _names(sources: Path) -> Sequence[str]:
    """First names that GSM8K's problems begin with, the more frequent ones."""
    text = (sources / "gsm8k/grade_school_math/data/train.jsonl").read_text(encoding="utf-8")
    found = re.findall(r'"question": "([A-Z][a-z]+) (?:has|had|is|was|bought|buys|wants|needs|makes|went|made)', text)
    return sorted(name for name in set(found) - {"He", "She", "It", "There", "Each"} if found.count(name) > 2)


def _things(sources: Path) -> Sequence[str]:
    """Things that GSM8K's problems count."""
    text = (sources / "gsm8k/grade_school_math/data/train.jsonl").read_text(encoding="utf-8")
    found = re.findall(r"How many ([a-z]+s) ", text)
    return sorted(
        thing for thing in set(found) - {"hours", "minutes", "days", "years", "times"} if found.count(thing) > 2
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(prog="python -m training_jobs.corpora.real_text", description=__doc__)
    parser.add_argument("--sources", type=Path, required=True, help="folder with a folder a source")
    parser.add_argument("--exams", type=Path, required=True, help="folder of the benchmarks, whose texts are left out")
    parser.add_argument("--pairs", type=Path, required=True, help="foreign and English texts, as the translator's")
    parser.add_argument("--out", type=Path, required=True, help="directory to write the corpus to")
    parser.add_argument("--tokens", type=float, default=120, help="millions of tokens (%(default)s)")
    parser.add_argument("--vocabulary", type=int, default=8192, help="size of the vocabulary (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same corpus")
    options = parser.parse_args(arguments)
    try:
        exams = Exams.read(options.exams)
        manifest = make(
            options.sources, exams, options.pairs, options.out,
            tokens=options.tokens * 1e6, vocabulary=options.vocabulary, seed=options.seed,
        )  # fmt: skip
    except OSError as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")
    print(json.dumps(manifest, indent=2))


if __name__ == "__main__":
    main()
