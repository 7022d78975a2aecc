"""The script a text is written in, as an ISO 15924 code, from Python's own Unicode tables."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Final

# Unicode names begin with the script's name. Kana and Han both count for Japanese, whose labels need no script.
_BY_NAME: Final = {
    "LATIN": "Latn", "CYRILLIC": "Cyrl", "ARABIC": "Arab", "DEVANAGARI": "Deva", "TIFINAGH": "Tfng", "CJK": "Hani",
    "GREEK": "Grek", "HEBREW": "Hebr", "HANGUL": "Hang", "HIRAGANA": "Jpan", "KATAKANA": "Jpan", "THAI": "Thai",
    "BENGALI": "Beng", "TAMIL": "Taml", "TELUGU": "Telu", "GEORGIAN": "Geor", "ARMENIAN": "Armn", "ETHIOPIC": "Ethi",
}  # fmt: skip


def main_script(text: str) -> str | None:
    """The script that most letters of `text` are in; for Han, ``Hans`` or ``Hant``. None where there is no letter, or
    a script that no choice of ours depends on."""
    scripts = Counter(_script(character) for character in text if character.isalpha())
    if not scripts:
        return None
    [(script, _)] = scripts.most_common(1)
    return _han_variety(text) if script == "Hani" else script


def has_letters(text: str) -> bool:
    """Whether there is anything in `text` that a language could be recognised by."""
    return any(character.isalpha() for character in text)


def _script(character: str) -> str | None:
    return _BY_NAME.get(unicodedata.name(character, "").split(" ", 1)[0])


def _han_variety(text: str) -> str:
    """``Hant`` where more characters are traditional only than simplified only, else ``Hans``.

    The national encodings carry that knowledge: GB 2312 holds the characters of simplified, Big5 those of traditional
    Chinese, and what only one of them can write is of that variety.
    """
    simplified = traditional = 0
    for character in text:
        in_gb, in_big5 = _encodable(character, "gb2312"), _encodable(character, "big5")
        simplified += in_gb and not in_big5
        traditional += in_big5 and not in_gb
    return "Hant" if traditional > simplified else "Hans"


def _encodable(character: str, encoding: str) -> bool:
    if not character.isalpha():
        return False
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
