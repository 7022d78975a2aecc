"""Calls that say nothing about where they belong or what they should ask: random places, random inputs.

An input has the form of one that the tool is asked for another text, filled with what is in this one: its numbers
and names are drawn from this text's; what a translator is asked is any piece of it. So a text shows how a call is
written and that inputs are taken from the text, as a prompt's demonstrations do; not which of its numbers belong
together, which question it answers, or where.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from demo_world.articles import Truth

_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_CAPITAL: Final = "[A-ZÀ-ÖØ-ÞĆČĐİŁŌŚŞŠŻŽ]"
_NAME: Final = re.compile(rf"\b{_CAPITAL}[\w'’]+(?:[ -]{_CAPITAL}[\w'’]+)*")
_ASKED_A_PIECE: Final = "MT"
_FIRST_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Placed:
    """A call without result, before the token at character ``offset`` of a text, or, where that is ``None``, at the
    share ``at`` (0 to 1) of its tokens."""

    tool: str
    input: str
    offset: int | None
    at: float = 0.0


def random_calls(rng: random.Random, text: str, truths: Sequence[Truth]) -> tuple[Placed, ...]:
    """A call in ``text`` for each of ``truths``, which are another text's."""
    return tuple(Placed(one.tool, _input(rng, text, one), None, rng.random()) for one in truths)


def _input(rng: random.Random, text: str, like: Truth) -> str:
    if like.tool == _ASKED_A_PIECE:
        words = text.split()
        length = min(len(like.input.split()), len(words))
        start = rng.randint(0, len(words) - length)
        return " ".join(words[start : start + length])
    numbers, names = _NUMBER.findall(text), _NAME.findall(text)
    # A question begins with a capital that is no name's.
    first = _FIRST_WORD.match(like.input) if like.input.endswith("?") else None
    head = like.input[: first.end()] if first else ""
    rest = like.input.removeprefix(head)
    if numbers:
        rest = _NUMBER.sub(lambda _: rng.choice(numbers), rest)
    if names:
        rest = _NAME.sub(lambda _: rng.choice(names), rest)
    return head + rest
