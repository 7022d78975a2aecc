"""Which numbers a text gives: those that it has in digits, and those that its words stand for."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Final

_NUMBER: Final = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_WORD: Final = re.compile(r"[a-z]+|%")


def numbers(text: str) -> list[str]:
    """The numbers in digits, without separators of thousands."""
    return [number.replace(",", "") for number in _NUMBER.findall(text)]


def given_numbers(text: str) -> set[str]:
    """The numbers that ``text`` has, or that its words stand for."""
    return {*numbers(text), *(number for word in _WORD.findall(text.lower()) for number in _STANDS_FOR.get(word, ()))}


def _read() -> dict[str, set[str]]:
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    found: defaultdict[str, set[str]] = defaultdict(set)
    for number, words in table.items():
        for word in words.split():
            found[word].add(number)
    return dict(found)


_STANDS_FOR: Final = _read()
"""The numbers by word, in lower case."""
