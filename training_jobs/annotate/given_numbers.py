"""Whether a text gives what a call asks with: numbers, in digits or in words, and names."""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Final

_NUMBER: Final = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_WORD: Final = re.compile(r"[a-z]+|[%(]")
_NAME: Final = re.compile(r"[^\W\d_]{2,}")


def is_given(before: str, asked: str, *, whole: bool) -> bool:
    """Whether the text ``before`` a call has what it asks with: its input ``asked`` as a ``whole``; or each number in
    it, in digits or as words stand for it, and each name, a capital word that is not its first.

    While it annotates, the model has read the text to its end, so a call may be made of numbers and names that come
    later, or of none that come at all, and still help: its result begins like the number that follows."""
    if whole:
        return asked.strip() in before
    names = {word.lower() for word in _NAME.findall(asked)[1:] if word[0].isupper()}
    return set(numbers(asked)) <= given_numbers(before) and names <= set(_NAME.findall(before.lower()))


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
