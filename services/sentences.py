"""Running English text: its sentences, and its letters without accents."""

import re
import unicodedata
from typing import Final

# A full stop after these ends a sentence so seldom that it is never taken to.
_ABBREVIATIONS: Final = frozenset(
    {
        "Dr", "Mr", "Mrs", "Ms", "St", "Ste", "Mt", "Ft", "Jr", "Sr", "Prof", "Gen", "Col", "Capt", "Lt",
        "Sgt", "No", "vs", "etc", "ca", "cf", "approx", "e.g", "i.e", "U.S", "U.K", "Inc", "Ltd", "Co",
    }
)  # fmt: skip
_BORDER: Final = re.compile(r"[.!?…][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[A-Z0-9À-Þ])")
_LAST_WORD: Final = re.compile(r"([^\s(\"“]+)\.$")


def split_sentences(text: str) -> list[str]:
    """`text` cut at sentence borders, each sentence stripped; joined by spaces they give its words again.

    Initials (`J. R. R.`) and common abbreviations do not end a sentence.
    """
    sentences, start = [], 0
    for border in _BORDER.finditer(text):
        sentence = text[start : border.end()].strip()
        if _ends_sentence(sentence):
            sentences.append(sentence)
            start = border.end()
    if rest := text[start:].strip():
        sentences.append(rest)
    return sentences


def _ends_sentence(sentence: str) -> bool:
    last = _LAST_WORD.search(sentence)
    if last is None:
        return True
    word = last.group(1)
    return word not in _ABBREVIATIONS and not (len(word) == 1 and word.isupper())


def without_accents(text: str) -> str:
    """`text` with its accents taken off."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))
