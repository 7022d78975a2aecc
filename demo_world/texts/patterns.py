"""The little pattern language that all texts are written in.

A pattern is a sentence with slots in braces and one bar where the call goes::

    Each of the {a} {containers} holds {b} {things}, so together they hold| {answer} {things}.

A slot is a value the generator gives (``{a}``, ``{answer}``), or a word drawn from ``tables/words.toml`` and then kept
for the rest of the text. ``{thing}`` and ``{things}`` are the two numbers of one noun; a capital
(``{Thing}``) starts a sentence; a trailing digit (``{person2}``) asks for another word of the same kind.
"""

from __future__ import annotations

import datetime
import random
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from demo_world.tables import read
from demo_world.texts.text import CallSlot, Text

CALL_MARK: Final = "|"
PRELUDE_SHARE: Final = 0.15
TAIL_SHARE: Final = 0.35

Subject = TypeVar("Subject")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What slots draw from: by kind, words and nouns (singular, plural)."""

    nouns: Mapping[str, tuple[tuple[str, str], ...]]
    words: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Registers:
    """The shapes in which a situation, a statement or a question is worded."""

    scene: tuple[str, ...]
    statement: tuple[str, ...]
    looked_up: tuple[str, ...]
    asking: tuple[str, ...]
    question: tuple[str, ...]


VOCABULARY: Final = read("words", Vocabulary)
REGISTERS: Final = read("registers", Registers)


class Slots(dict[str, str]):
    """Values for a pattern's slots; a word that is not given is drawn once and remembered."""

    def __init__(self, rng: random.Random, given: Mapping[str, str] | None = None) -> None:
        super().__init__(given or {})
        self._rng = rng

    def __missing__(self, name: str) -> str:
        if name[0].isupper():
            return capitalise(self[name[0].lower() + name[1:]])
        kind = name.rstrip(string.digits)
        number = name[len(kind) :]
        if kind in VOCABULARY.words:
            unused = [word for word in VOCABULARY.words[kind] if word not in self.values()]
            self[name] = self._rng.choice(unused)
            return self[name]
        nouns = VOCABULARY.nouns
        singular = kind if kind in nouns else kind.removesuffix("s")
        if singular not in nouns:
            raise KeyError(f"pattern slot {{{name}}} is neither given nor a kind of word in tables/words.toml")
        unused_nouns = [noun for noun in nouns[singular] if noun[0] not in self.values()]
        self[singular + number], self[singular + "s" + number] = self._rng.choice(unused_nouns)
        return self[name]


def capitalise(sentence: str) -> str:
    """``sentence`` with its first letter in upper case; the rest stays as it is (unlike :meth:`str.capitalize`)."""
    return sentence[:1].upper() + sentence[1:]


@dataclass(frozen=True, slots=True)
class Phrasing(Generic[Subject]):
    """Ways to say one thing, held out (or not) together.

    ``key`` names it in the split, ``subject`` is what it is about, ``patterns`` are the whole patterns, one a
    register.
    """

    key: str
    subject: Subject
    patterns: tuple[str, ...]


def compose(register: str, parts: Mapping[str, str]) -> str:
    """A whole pattern: ``register`` with its parts (themselves patterns) put in; a capital name capitalises the
    part."""
    pattern = register
    for name, part in parts.items():
        pattern = pattern.replace(f"{{{name}}}", part).replace(f"{{{capitalise(name)}}}", capitalise_pattern(part))
    return pattern.replace(f" {CALL_MARK}", CALL_MARK)  # a part may begin with its call


def worded(registers: Iterable[str], **parts: str) -> tuple[str, ...]:
    """The whole patterns of ``parts`` as they open a sentence, one a register."""
    return tuple(capitalise_pattern(compose(register, parts)) for register in registers)


def looked_up(statement: str) -> tuple[str, ...]:
    """The whole patterns in which a statement is worded that can be looked up, one a register."""
    return worded((*REGISTERS.statement, *REGISTERS.looked_up), statement=statement)


def surround(rng: random.Random, pattern: str, preludes: Sequence[str], tails: Sequence[str]) -> str:
    """``pattern``, sometimes with a sentence before it (unless it opens with a label such as ``Q:``), sometimes with
    one after."""
    if rng.random() < PRELUDE_SHARE and ":" not in pattern:
        pattern = f"{rng.choice(preludes)} {pattern}"
    if rng.random() < TAIL_SHARE:
        pattern = f"{pattern if pattern.endswith('.') else pattern + '.'} {rng.choice(tails)}"
    return pattern


def capitalise_pattern(pattern: str) -> str:
    """``pattern`` as it opens a sentence; a slot that comes first gets its capital."""
    return "{" + capitalise(pattern[1:]) if pattern.startswith("{") else capitalise(pattern)


@dataclass(frozen=True, slots=True)
class Known:
    """What the generator knows of a text before its words are chosen."""

    call: CallSlot
    answer: str
    date: datetime.date | None = None


def render(pattern: str, slots: Slots, known: Known, phrasing: str) -> Text:
    """Fill ``pattern`` and put the call at its bar.

    Raises :class:`KeyError` for a slot that nobody gives and :class:`ValueError` for a pattern without exactly one
    bar.
    """
    if pattern.count(CALL_MARK) != 1:
        raise ValueError(f"a pattern needs exactly one {CALL_MARK!r}: {pattern!r}")
    slots["answer"] = known.answer
    before, after = pattern.format_map(slots).split(CALL_MARK)
    return Text((before, known.call, after), known.answer, phrasing, known.date)
