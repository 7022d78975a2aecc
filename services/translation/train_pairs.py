"""``python -m services.translation.train_pairs``: real sentences and words become the pairs that a model is trained on.

    python -m services.translation.train_pairs --real FOLDER --keep-out FOLDER --lama FOLDER --out var/pairs

``--real`` holds the unpacked sources (`train_sources.py`, `train_dictionary.py`), ``--keep-out`` the Tatoeba test set
of LASER (``tatoeba.xxx-eng.xxx``), none of whose foreign sentences are trained on, ``--lama`` LAMA's SQuAD questions,
some of which XQuAD holds too. Tatoeba is split by English sentence, so that a sentence held out in one language is
trained on in none. The same files give the same pairs in the same order; the command prints counts and a digest.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import re
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo_world.splits import is_held_out, stable_hash
from services.translation.train_dictionary import dictionary, with_articles
from services.translation.train_phrasebook import phrasebook
from services.translation.train_sources import SOURCES, Kind, Pair, xquad

logger = logging.getLogger(__name__)

TRAIN_NAME: Final = "train.tsv"
EXAM_NAME: Final = "exam.tsv"
COUNTS_NAME: Final = "counts.json"

HELD_OUT_PERCENT: Final = 3.0
EXAM_PAIRS: Final = 1_000
"""The most pairs of one language in the exam."""
WATCHED: Final = 20

_SPLIT: Final = "translation pair"
_MOST_CHARACTERS: Final = 400
_MOST_RATIO: Final = 3.0
"""Between the numbers of UTF-8 bytes of a long text and its English: beyond it they are no translations."""
_RATIO_FROM: Final = 60
_KINDS: Final[dict[str, Kind]] = {"sentence": "sentence", "document": "document", "word": "word", "phrase": "phrase"}
_ENGLISH_WORD: Final = re.compile(r"[A-Za-z]+(?:-[A-Za-z]+)*")


@dataclass(frozen=True, slots=True)
class Pairs:
    """What is trained on, and the exam: held-out sentences of Tatoeba."""

    train: list[Pair]
    exam: list[Pair]

    def digest(self) -> str:
        """SHA-256 over all pairs in order."""
        summed = hashlib.sha256()
        for pair in (*self.train, *self.exam):
            summed.update(_row(pair).encode())
        return summed.hexdigest()


def prepare(real: Path, keep_out: Path, lama: Path) -> Pairs:
    """Reads, cleans, deduplicates and splits all sources.

    Raises:
        ValueError: a folder lacks the files that are expected there.
    """
    forbidden = _forbidden(keep_out)
    lama_ids = _lama_ids(lama)
    read: list[Pair] = []
    for name, (folder, reader) in SOURCES.items():
        read += _some(name, reader(real / folder), real / folder)
    read += _some("xquad", xquad(real / "xquad", lama_ids), real / "xquad")

    seen: set[tuple[str, str, str]] = set()
    train: list[Pair] = []
    held_out: list[Pair] = []
    for pair in map(_cleaned, read):
        foreign, english = key(pair.text), key(pair.english)
        identity = (_group(pair), foreign, english)
        if identity in seen or foreign in forbidden or not _is_translation(pair, foreign, english):
            continue
        seen.add(identity)
        if not is_held_out(_SPLIT, english, percent=HELD_OUT_PERCENT):
            train.append(pair)
        elif pair.kind == "sentence":
            held_out.append(pair)
    exam = _exam(held_out)
    asked = {(_group(pair), key(pair.text)) for pair in exam}
    train = [pair for pair in train if (_group(pair), key(pair.text)) not in asked]

    frequency = Counter(word for pair in train for word in _ENGLISH_WORD.findall(pair.english))
    words = _some("dictionary", dictionary(real / "omw", real / "open_english_wordnet", frequency), real / "omw")
    words += with_articles(words, train)
    phrases = [pair for pair in phrasebook() if (_group(pair), key(pair.text)) not in asked]
    known = asked | {(_group(pair), key(pair.text)) for pair in phrases}  # a phrasebook knows better than a dictionary
    train += [pair for pair in map(_cleaned, words) if key(pair.text) and (_group(pair), key(pair.text)) not in known]
    train += phrases
    return Pairs(train, exam)


def write(pairs: Pairs, out: Path) -> dict[str, object]:
    """Writes ``train.tsv`` and ``exam.tsv`` (kind, language, text, English) and ``counts.json``; what that one says."""
    out.mkdir(parents=True, exist_ok=True)
    counts: dict[str, object] = {"digest": pairs.digest()}
    for name, part in ((TRAIN_NAME, pairs.train), (EXAM_NAME, pairs.exam)):
        (out / name).write_text("".join(map(_row, part)), encoding="utf-8")
        by_group = Counter(f"{pair.language} {pair.kind}" for pair in part)
        counts[Path(name).stem] = dict(sorted(by_group.items()))
    (out / COUNTS_NAME).write_text(json.dumps(counts, indent=2) + "\n", encoding="utf-8")
    return counts


def watched(pairs: Sequence[Pair]) -> list[Pair]:
    """The first `WATCHED` pairs of each language, all its scripts together: what a training is watched on and its
    threshold chosen; reports are on the others."""
    by_language: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        if len(by_language[pair.language[:3]]) < WATCHED:
            by_language[pair.language[:3]].append(pair)
    return [pair for _, own in sorted(by_language.items()) for pair in own]


def read(path: Path) -> list[Pair]:
    """The pairs of a file that `write` made."""
    pairs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        kind, language, text, english = line.split("\t")
        pairs.append(Pair(_KINDS[kind], language, text, english))
    return pairs


def key(text: str) -> str:
    """``text`` without what two copies of a sentence may differ in: case, signs, blanks, forms of a character."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(
        character for character in folded if character.isalnum() or unicodedata.category(character)[0] == "M"
    )


def _row(pair: Pair) -> str:
    return f"{pair.kind}\t{pair.language}\t{pair.text}\t{pair.english}\n"


def _cleaned(pair: Pair) -> Pair:
    def clean(text: str) -> str:
        return " ".join(text.replace("\u200b", "").replace("\ufeff", "").split())

    return Pair(pair.kind, pair.language, clean(pair.text), clean(pair.english))


def _group(pair: Pair) -> str:
    return pair.language[:3]


def _is_translation(pair: Pair, foreign: str, english: str) -> bool:
    if not foreign or not english or foreign == english or len(pair.text) > _MOST_CHARACTERS:
        return False
    sizes = sorted((len(pair.text.encode()), len(pair.english.encode())))
    # Three bytes of Devanagari are one character, so the bound is a loose one.
    return len(pair.english) <= _MOST_CHARACTERS and (sizes[1] < _RATIO_FROM or sizes[1] <= 2 * _MOST_RATIO * sizes[0])


def _exam(held_out: Iterable[Pair]) -> list[Pair]:
    """At most `EXAM_PAIRS` of each language, each foreign sentence once, in an order that follows from the pairs."""
    chosen: dict[tuple[str, str], Pair] = {}
    counts: Counter[str] = Counter()
    for pair in sorted(held_out, key=lambda pair: stable_hash(_SPLIT, _row(pair))):
        place = (_group(pair), key(pair.text))
        if place not in chosen and counts[_group(pair)] < EXAM_PAIRS:
            chosen[place] = pair
            counts[_group(pair)] += 1
    return sorted(chosen.values(), key=lambda pair: (_group(pair), _row(pair)))


def _some(name: str, pairs: Iterator[Pair], folder: Path) -> list[Pair]:
    found = list(pairs) if folder.is_dir() else []
    if not found:
        raise ValueError(f"{folder} holds no pairs of {name}; unpack its source there")
    logger.info("%s: %d pairs", name, len(found))
    return found


def _forbidden(folder: Path) -> frozenset[str]:
    texts = [
        key(line)
        for path in sorted(folder.glob("tatoeba.*-eng.*"))
        if path.suffix != ".eng"
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    if not texts:
        raise ValueError(f"{folder} holds no files named like tatoeba.deu-eng.deu")
    return frozenset(texts)


def _lama_ids(folder: Path) -> frozenset[str]:
    rows = [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()
    ]
    if not rows:
        raise ValueError(f"{folder} holds no questions of LAMA's SQuAD (*.jsonl)")
    return frozenset(str(row["id"]).rsplit("_", 1)[0] for row in rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; exits with 1 and one line where a source is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m services.translation.train_pairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--real", type=Path, required=True, help="folder of the unpacked sources")
    parser.add_argument("--keep-out", type=Path, required=True, help="folder of Tatoeba files not to train on")
    parser.add_argument("--lama", type=Path, required=True, help="folder of LAMA's SQuAD part")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        counts = write(prepare(options.real, options.keep_out, options.lama), options.out)
    except (ValueError, OSError) as error:
        sys.exit(f"train_pairs: {error}")
    sys.stdout.write(json.dumps(counts, indent=2) + "\n")


if __name__ == "__main__":
    main()
