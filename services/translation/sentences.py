"""Sentence borders in running text of any of the 202 languages, and the way back.

Cutting too seldom costs little: the model reads two sentences at once. Cutting inside a sentence ruins both halves. So
a full stop, which also marks abbreviations and ordinals (`am 20. November`), must look like an end to be taken for one;
marks that do nothing else (`。`, `؟`, `।`) always are. Scripts without marks, such as Thai, are cut by the token limit
only (`translator.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Of CJK, Arabic, Urdu, Devanagari, Armenian, Ethiopic, Khmer, Burmese, Tibetan and Ol Chiki.
_SURE: Final = "。！？｡؟۔।॥։።፧៕។။།༎᱾"
_UNSURE: Final = ".!?…"
_CLOSING: Final = "\"'”’»›)\\]）」』】》"
_BORDER: Final = re.compile(
    rf"[{_SURE}]+[{_CLOSING}]*\s*"  # sure, with or without a space after it
    rf"|[{_UNSURE}]+[{_CLOSING}]*(?:[^\S\n]»)?[^\S\n]+(?=\S)"  # French sets a space before »
    r"|[^\S\n]*\n\s*"
)
_LAST_WORD: Final = re.compile(r"([^\s(\[\"“«]+)\.$")
_ABBREVIATED: Final = """
approx art av bzw ca capt cf co col d.h dott dr dra e.g env etc evtl ex ft gen i.e inc inkl jr lt ltd m mlle mme mr
mrs ms mt no np nr p.ex prof sig sr sra srta st str tj tzn tzw u.a ul usw vgl vs z.b им напр ок стр т.д т.е т.п ул
"""
_ABBREVIATIONS: Final = frozenset(_ABBREVIATED.split())


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and what joins it to the one before: nothing, a space or line breaks."""

    text: str
    gap: str


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of `text`, none of them empty."""
    sentences: list[Sentence] = []
    start, gap = 0, ""
    for border in _BORDER.finditer(text):
        mark = border.group()
        if not _ends(text[start : border.start()], mark, text[border.end() : border.end() + 1]):
            continue
        if sentence := text[start : border.end()].strip():
            sentences.append(Sentence(sentence, gap if sentences else ""))
            gap = " "
        if "\n" in mark:
            gap = "\n" * min(2, mark.count("\n"))
        start = border.end()
    if rest := text[start:].strip():
        sentences.append(Sentence(rest, gap if sentences else ""))
    return sentences


def join_sentences(sentences: Sequence[Sentence], translations: Sequence[str]) -> str:
    """The translations as one text, line breaks where the sentences had them, spaces elsewhere."""
    pairs = zip(sentences, translations, strict=True)
    return "".join(sentence.gap + translation for sentence, translation in pairs)


def _ends(before: str, mark: str, following: str) -> bool:
    """Whether the sentence `before` ends at `mark`, given the character that follows it."""
    stop = mark.strip()
    if not stop or stop[0] in _SURE:
        return True
    if unicodedata.category(following) == "Ll":
        return False
    if stop[0] != ".":
        return True
    word = _LAST_WORD.search(before + ".")
    if word is None:
        return True
    last = word.group(1)
    is_ordinal = last.isdigit() and len(last) <= 2
    is_initial = len(last) == 1 and last.isupper()
    return not (is_ordinal or is_initial or last.lower() in _ABBREVIATIONS)
