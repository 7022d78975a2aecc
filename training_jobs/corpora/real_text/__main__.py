"""Make a base model's corpus of real text: read the sources, mix them, learn the vocabulary, encode.

    toolformer jobs real-text --from SOURCES --exams DATA --pairs train.tsv --out CORPUS --tokens 60
    toolformer jobs pretrain --corpus CORPUS --out RUN --steps 15000 --positions 1024 --precision bfloat16

``--from`` holds the sources, a folder or a ``.tar.xz`` each. ``--tokens`` counts millions; a share of them goes to each
source by ``MIXTURE``, and short sources are read again. ``CORPUS`` then holds ``tokenizer.json``,
``tokens.safetensors``, which training maps into memory, ``manifest.json``, the same in ``late`` for the steps in which
the rate falls, and of what is not read the texts to teach on (`teaching.py`); with ``--tokens 0`` these alone. The same
seed and the same files give the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from rich.console import Console
from tokenizers import Tokenizer

from demo_world.splits import stable_hash
from language_model.token_file import Tokens
from toolformer.tools import ToolRegistry
from training_jobs.corpora.base.drawing import CorpusText, prompt_form, rows, under_heading
from training_jobs.corpora.base.row_encoder import RowEncoder, texts_for_vocabulary
from training_jobs.corpora.real_text import generated_part
from training_jobs.corpora.real_text.again import with_parts_again
from training_jobs.corpora.real_text.facts_part import facts
from training_jobs.corpora.real_text.further import add_further
from training_jobs.corpora.real_text.known_texts import KnownTexts, said
from training_jobs.corpora.real_text.overlap import Exams, Part
from training_jobs.corpora.real_text.problems import PHRASES, cut
from training_jobs.corpora.real_text.sources import SOURCES, answering_sentences, school_problems
from training_jobs.corpora.real_text.teaching import write_teaching
from training_jobs.errors import StageError
from training_jobs.pretrain.rows import LATE, write_manifest
from training_jobs.pretrain.tokenizer import END_OF_TEXT, save_tokenizer, train_tokenizer
from training_jobs.records import Document
from training_jobs.runner.progress import StageProgress

MIXTURE: Final = {
    "encyclopedia": 0.42, "news": 0.05, "stories": 0.02, "definitions": 0.03, "reading": 0.08, "trivia": 0.03,
    "grade school": 0.06, "one step": 0.02, "problems": 0.05, "sums": 0.02, "exercises": 0.004, "countries": 0.02,
    "dated": 0.001, "days": 0.01, "foreign": 0.035, "headings": 0.05, "prompts": 0.07, "world": 0.03,
}  # fmt: skip
"""The share of tokens of each source. ``headings`` and ``prompts`` show known texts in the loop's forms; ``world`` is
what the generated world's base model reads."""
LATE_MIXTURE: Final = {
    "encyclopedia": 0.11, "news": 0.024, "stories": 0.008, "definitions": 0.016, "reading": 0.072, "trivia": 0.016,
    "grade school": 0.05, "one step": 0.032, "problems": 0.1, "sums": 0.05, "exercises": 0.003, "countries": 0.008,
    "dated": 0.001, "days": 0.15, "foreign": 0.05, "headings": 0.09, "prompts": 0.21, "world": 0.01,
}  # fmt: skip
"""The same of what is read last, while the learning rate falls: less prose, more of what tools are asked."""
_LATE_SHARE: Final = 1.15
"""So many tokens for one of those read first."""
_VOCABULARY_CHARACTERS: Final = 20_000_000
"""Merges settle after so much text, of all sources by their shares."""
_BATCH: Final = 200
"""Texts of a source that are encoded together; it may have so many more than its share."""
_ROUNDS: Final = 1_000
_WORLD_TEXTS: Final = 100_000
_LONGEST_FOREIGN: Final = 200
_SEVERAL: Final = ("problems", "sums", "foreign")
"""Their rows may have several lines, each of which could stand alone."""
AGAIN: Final = {"encyclopedia": 0.5, "news": 0.5, "stories": 0.5, "definitions": 0.3, "reading": 0.3, "trivia": 0.3}
"""Of what is read last, the share of a source's texts that have parts of themselves again (`again.py`)."""
_NO_NAMES: Final = frozenset({"He", "She", "It", "They", "There", "Each"})
_NO_THINGS: Final = frozenset({"hours", "minutes", "days", "years", "times"})


class Corpus:
    """Every source's texts.

    Args:
        sources: a folder with a folder a source.
        part: what of them is read.
        pairs: a table of kind, language, foreign and English text, as the translator's.
        seed: draws order and forms.

    Raises:
        OSError: if a source is not there.
    """

    def __init__(self, sources: Path, part: Part, pairs: Path, seed: int) -> None:
        self._sources, self._part, self._seed = sources, part, seed
        self._tools = tuple(ToolRegistry.load())
        self._pairs = [row for row in _pairs(pairs) if part.has("pair", row[2])]
        problems = list(school_problems(sources, part))
        # What is held out is about the same names and things.
        asked = " ".join(row["question"] for row in school_problems(sources, replace(part, held_out=False)))
        self._known = KnownTexts(
            [one for row in problems for one in cut(row["question"], row["answer"])],
            list(answering_sentences(sources, part)),
            self._pairs,
            _frequent(r"\b([A-Z][a-z]+) (?:has|had|bought|buys|wants|needs|makes|went|made)\b", asked, _NO_NAMES),
            _frequent(r"How many ([a-z]+s) ", asked, _NO_THINGS),
            partial(facts, exams=part.exams, side="read"),
        )

    def texts(self, source: str) -> Iterator[CorpusText]:
        """The texts of one source, read again and again; what is held out is read once."""
        for round_ in range(1 if self._part.held_out else _ROUNDS):
            rng = self._drawing(source, round_)
            if source == "world":
                yield from rows(_WORLD_TEXTS, self._tools, seed=self._seed + round_)
            elif source in SOURCES:
                found = False
                for text in SOURCES[source](self._sources, self._part, rng):
                    found = True
                    yield CorpusText.of(text)
                if not found and not self._part.held_out:  # a small source may have nothing there
                    raise FileNotFoundError(f"{self._sources} holds no texts of the source {source!r}")
            else:
                yield from self._made(source, rng)

    def _made(self, source: str, rng: random.Random) -> Iterator[CorpusText]:
        if source == "headings":
            while True:
                yield under_heading(rng, self._known)
        if source == "prompts":
            while True:
                yield prompt_form(rng, rng.choice(self._tools), "half", self._known)
        texts: dict[str, Callable[[], Iterator[str]]] = {
            "problems": lambda: generated_part.problems(rng, self._known.names, self._known.things),
            "sums": lambda: generated_part.sums(rng, self._part.exams),
            "days": lambda: (text for text, _ in generated_part.days(rng)),
            "typed": lambda: generated_part.typed(rng, self._part.exams),
            "word problems": lambda: generated_part.word_problems(
                rng, self._known.names, self._known.things, self._part.exams
            ),
            "foreign": lambda: generated_part.foreign(rng, self._pairs),
            "meanings": lambda: generated_part.asked_foreign(rng, self._pairs),
            "everyday": lambda: generated_part.everyday(rng, self._pairs),
            "facts": lambda: (one.text for one in facts(rng, self._part.exams, "taught")),
            "stated": lambda: (one.text for one in facts(rng, self._part.exams, "taught") if "?" not in one.text),
        }
        yield from map(CorpusText.of, texts[source]())

    def documents(self, source: str) -> Iterator[Document]:
        """The texts of one source as documents; a day's has its date. Of several lines one stands alone, or a model
        would learn to go on behind the answer."""
        if source == "days":
            for number, (text, day) in enumerate(generated_part.asked_days(self._drawing(source, 0))):
                yield Document(f"{source}/{number}", text, date=day.isoformat(), source=source)
            return
        for number, one in enumerate(self.texts(source)):
            text = one.alone or ""
            yield Document(f"{source}/{number}", text.partition("\n")[0] if source in _SEVERAL else text, source=source)

    def _drawing(self, source: str, round_: int) -> random.Random:
        held_out = ("held out",) if self._part.held_out else ()
        return random.Random(stable_hash("real text", source, str(self._seed), str(round_), *held_out))


def make(
    sources: Path, exams: Exams, pairs: Path, out: Path, *, tokens: float, vocabulary: int | Tokenizer, seed: int
) -> dict[str, Any]:
    """Make the corpus of so many ``tokens`` in ``out`` and return its manifest.

    ``vocabulary`` is the size of the one to learn, or one that there is.

    Raises:
        OSError: if a source is not there.
    """
    out.mkdir(parents=True, exist_ok=True)
    registry = ToolRegistry.load()
    corpus = Corpus(sources, Part(exams), pairs, seed)
    tokenizer = vocabulary if isinstance(vocabulary, Tokenizer) else _learned(corpus, registry, vocabulary)
    save_tokenizer(tokenizer, out)
    encoder = Encoder(tokenizer, registry, seed)
    texts = {source: corpus.texts(source) for source in MIXTURE}
    first = _encode(encoder, texts, MIXTURE, tokens, out)
    save_tokenizer(tokenizer, out / LATE)
    late = _encode(encoder, texts, LATE_MIXTURE, _LATE_SHARE * tokens, out / LATE, AGAIN)
    about = {"seed": seed, "vocabulary": tokenizer.get_vocab_size()}
    write_manifest(out / LATE, about | late)
    return write_manifest(out, about | first)


def _learned(corpus: Corpus, registry: ToolRegistry, size: int) -> Tokenizer:
    texts = (
        one
        for source, share in MIXTURE.items()
        for one in _up_to(texts_for_vocabulary(corpus.texts(source), registry, said), share * _VOCABULARY_CHARACTERS)
    )
    return train_tokenizer(texts, vocab_size=size)


def _of_model(folder: Path) -> Tokenizer:
    return Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))


def _encode(
    encoder: Encoder, texts: Mapping[str, Iterator[CorpusText]], mixture: Mapping[str, float], tokens: float, out: Path,
    again: Mapping[str, float] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write the next texts of each source, so many ``tokens`` of all, and return what there are; into a share of them,
    ``again``, parts are put again."""
    ids: list[np.ndarray[Any, Any]] = []
    learned: list[np.ndarray[Any, Any]] = []
    counts: dict[str, dict[str, int]] = {}
    with StageProgress("encode", int(tokens), 0, Console(stderr=True), unit="tokens") as progress:
        for source, share in mixture.items():
            counts[source] = {"texts": 0, "tokens": 0}
            while counts[source]["tokens"] < share * tokens:
                encoded = encoder.encode(list(islice(texts[source], _BATCH)), (again or {}).get(source, 0.0))
                made = sum(len(row) for row, _ in encoded)
                counts[source]["texts"] += len(encoded)
                counts[source]["tokens"] += made
                ids += [row for row, _ in encoded]
                learned += [flags for _, flags in encoded]
                progress.advance(made, {})
    starts = torch.tensor([0, *map(len, ids)]).cumsum(0)
    found = Tokens(torch.from_numpy(np.concatenate(ids)), torch.from_numpy(np.concatenate(learned)), starts)
    found.save(out)
    return {**found.counts(), "sources": counts}


class Encoder:
    """Ids of rows, and which of them a model learns to make."""

    def __init__(self, tokenizer: Tokenizer, registry: ToolRegistry, seed: int) -> None:
        self._tokenizer, self._seed = tokenizer, seed
        self._rows = RowEncoder(tokenizer, registry, said)
        self._end = tokenizer.get_vocab()[END_OF_TEXT]

    def encode(
        self, texts: Sequence[CorpusText], again: float = 0.0
    ) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
        """Each closed by the end-of-text mark; half begin with it too, as texts that are scored do. Plain texts, which
        are most, are encoded side by side; a share of them, ``again``, has parts again."""
        plain = [one.alone for one in texts]
        encodings = self._tokenizer.encode_batch_fast([text or "" for text in plain], add_special_tokens=False)
        found = []
        for one, text, encoding in zip(texts, plain, encodings, strict=True):
            begin = stable_hash("begin", str(self._seed), str(one.parts)) % 2 == 0
            if text is None:
                ids, learned = self._rows.encode(one, begin=begin)
            else:
                rng = random.Random(stable_hash("again", str(self._seed), text))
                now = with_parts_again(rng, encoding.ids) if rng.random() < again else encoding.ids
                ids = [self._end] * begin + list(now) + [self._end]
                learned = [True] * len(ids)
            found.append((np.array(ids, dtype=np.int32), np.array(learned, dtype=bool)))
        return found


def unpacked(folder: Path, into: Path) -> Path:
    """The folder of the sources: ``folder``, or ``into`` with its archives unpacked there, once."""
    careful: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # from Python 3.11.4 on
    for archive in sorted(folder.glob("*.tar.xz")):
        done = into / f"{archive.name}.done"
        if not done.exists():
            with tarfile.open(archive) as members:
                members.extractall(into, **careful)
            done.touch()
    return into if into.exists() else folder


def _up_to(texts: Iterator[str], characters: float) -> Iterator[str]:
    for text in texts:
        characters -= len(text)
        if characters < 0:
            return
        yield text


def _pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Language by name, foreign text, English."""
    names = PHRASES["languages"]
    for line in path.read_text(encoding="utf-8").splitlines():
        _, language, foreign, english = line.split("\t")
        if language in names and len(foreign) < _LONGEST_FOREIGN:
            yield names[language], foreign, english


def _frequent(pattern: str, text: str, no: Collection[str]) -> Sequence[str]:
    """What the pattern finds more than twice, in the order of the alphabet."""
    found = Counter(re.findall(pattern, text))
    return sorted(one for one, count in found.items() if count > 2 and one not in no)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this job."""
    parser = argparse.ArgumentParser(
        prog="python -m training_jobs.corpora.real_text",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--from", dest="sources", type=Path, required=True, help="folder with a folder or .tar.xz a source"
    )
    parser.add_argument("--exams", type=Path, required=True, help="folder of the benchmarks, whose texts are left out")
    parser.add_argument("--pairs", type=Path, required=True, help="foreign and English texts, as the translator's")
    parser.add_argument("--out", type=Path, required=True, help="directory to write the corpus to")
    parser.add_argument("--tokens", type=float, default=60, help="millions of tokens; 0: no corpus (%(default)s)")
    parser.add_argument("--vocabulary", type=int, default=8192, help="size of the vocabulary (%(default)s)")
    parser.add_argument("--vocabulary-of", type=Path, help="model folder whose vocabulary to use, to train it further")
    parser.add_argument(
        "--teach", type=int, default=3_000, help="texts of a tool in each round of teaching (%(default)s)"
    )
    parser.add_argument(
        "--further",
        type=int,
        default=0,
        help="as many questions that the running search service answers, and over paragraphs, and statements (0)",
    )
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same corpus")
    options = parser.parse_args(arguments)
    for name in ("teach", "further"):
        if getattr(options, name) < 0:
            parser.error(f"--{name} must be at least 0, not {getattr(options, name)}")
    try:
        sources = unpacked(options.sources, options.out / "sources"), Exams.read(options.exams), options.pairs
        folder, exams, pairs = sources
        held_out = Corpus(folder, Part(exams, held_out=True), pairs, options.seed)
        write_teaching(held_out.documents, options.teach, options.out)
        if options.further:
            asyncio.run(add_further(folder, exams, options.further, options.seed, options.out, ToolRegistry.load()))
        if options.tokens:
            tokens, known = options.tokens * 1e6, options.vocabulary_of
            vocabulary = _of_model(known) if known else options.vocabulary
            manifest = make(*sources, options.out, tokens=tokens, vocabulary=vocabulary, seed=options.seed)
            print(json.dumps(manifest, indent=2))
    except (OSError, StageError) as trouble:
        parser.exit(1, f"{parser.prog}: {trouble}\n")


if __name__ == "__main__":
    main()
