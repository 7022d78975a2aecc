"""Real sentences with their English, read from the files that publish them.

Each reader takes the unpacked folder of one source and yields what it holds, in the order of the files; cleaning,
splitting and counting is the work of `train_pairs.py`.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from services.translation.labels import parse_language
from services.translation.scripts import main_script

Kind = Literal["sentence", "document", "word", "phrase"]
"""A sentence of Tatoeba, of which some are held out; a sentence of another source; a word of a dictionary; an entry of
the phrasebook."""

_MANYTHINGS_ABOUT: Final = "about"
_SPACE_BEFORE: Final = re.compile(r"\s+([,.;:!?%)\]]|'s\b|n't\b)")
_SPACE_AFTER: Final = re.compile(r"([(\[])\s+")
_PAWSX_MISSING: Final = "NS"


@dataclass(frozen=True, slots=True)
class Pair:
    """A text in the language with this FLORES-200 code, and its English."""

    kind: Kind
    language: str
    text: str
    english: str


def manythings(folder: Path) -> Iterator[Pair]:
    """Tatoeba as manythings.org packs it: ``deu-eng.zip`` with ``deu.txt`` in it, or ``ara.txt``; English first."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                [member] = [
                    name
                    for name in archive.namelist()
                    if name.endswith(".txt") and _MANYTHINGS_ABOUT not in name and not Path(name).name.startswith(".")
                ]
                with archive.open(member) as file:
                    yield from _tabbed(io.TextIOWrapper(file, "utf-8-sig"), path.stem[:3])
        elif path.suffix == ".txt":
            with path.open(encoding="utf-8-sig") as file:
                yield from _tabbed(file, path.stem)


def opus_tatoeba(folder: Path) -> Iterator[Pair]:
    """Tatoeba as the OPUS-MT test sets hold it: files of the same lines, ``NAME.eng`` beside ``NAME.deu``."""
    for path in sorted(folder.glob("tatoeba/*/*.eng")):
        for other in sorted(path.parent.glob(f"{path.stem}.*")):
            if other != path:
                yield from _aligned("sentence", other.suffix[1:], _lines(other), _lines(path))


def tico(folder: Path) -> Iterator[Pair]:
    """TICO-19 as the OPUS-MT test sets hold it."""
    for path in sorted(folder.glob("tico19/en-*/*.en")):
        language = path.parent.name.removeprefix("en-")
        yield from _aligned("document", language, _lines(path.with_suffix(f".{language}")), _lines(path))


def pawsx(folder: Path) -> Iterator[Pair]:
    """PAWS-X: both sentences of each row; rows of all languages are the same."""
    for path in sorted(folder.glob("*-en.tsv")):
        english = [_detokenized(column) for column in _two_columns(path)]
        for other in sorted(folder.glob(f"{path.stem.removesuffix('en')}*.tsv")):
            if other != path:
                texts = _two_columns(other)
                kept = [pair for pair in zip(texts, english, strict=True) if _PAWSX_MISSING not in pair]
                yield from _aligned("document", other.stem[-2:], *map(list, zip(*kept, strict=True)))


def xquad(folder: Path, without: Collection[str]) -> Iterator[Pair]:
    """The questions of XQuAD, which have the same ids in all languages; ``without`` names ids to leave out."""
    english = _xquad_questions(folder / "xquad.en.json")
    for path in sorted(folder.glob("xquad.*.json")):
        language = path.suffixes[0][1:]
        if language != "en":
            for id_, text in _xquad_questions(path).items():
                if id_ in english and id_ not in without:
                    yield from _aligned("document", language, [text], [english[id_]])


def _tabbed(lines: Iterator[str] | io.TextIOBase, language: str) -> Iterator[Pair]:
    for line in lines:
        english, text, *_ = line.rstrip("\n").split("\t")
        yield from _aligned("sentence", language, [text], [english])


def _aligned(kind: Kind, language: str, texts: list[str], english: list[str]) -> Iterator[Pair]:
    for text, meaning in zip(texts, english, strict=True):
        code = parse_language(language, main_script(text))
        if code is None:
            raise ValueError(f"FLORES-200 has no language {language!r}")
        yield Pair(kind, code, text, meaning)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _two_columns(path: Path) -> list[str]:
    return [column for line in _lines(path) for column in line.split("\t")[:2]]


def _detokenized(text: str) -> str:
    """``A , b ( c ) .`` as people write it."""
    text = text.replace("``", '"').replace("''", '"')
    return _SPACE_AFTER.sub(r"\1", _SPACE_BEFORE.sub(r"\1", text))


def _xquad_questions(path: Path) -> dict[str, str]:
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    return {
        question["id"]: question["question"]
        for article in articles
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    }


SOURCES: Final[Mapping[str, tuple[str, Callable[[Path], Iterator[Pair]]]]] = {
    "manythings": ("tatoeba_manythings", manythings),
    "opus": ("opus_testsets", opus_tatoeba),
    "tico": ("opus_testsets", tico),
    "pawsx": ("pawsx", pawsx),
}
"""Folder and reader of each source that needs nothing else, by name."""
