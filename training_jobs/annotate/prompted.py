"""A document behind a tool's few-shot prompt, as token ids, and the positions where a call may be put into it.

The ids are made in segments: the prompt up to ``Input:``, which is the same for every document; `` x``; ``\\nOutput:``;
and `` x`` again, which the model is led to copy. A document's own ids are those of ``x`` without the space, so both
divide the text in the same way but, at times, in its first word. A position is used where both have a border between
two tokens that is a border between two characters as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from language_model.bulk.interface import PromptedText
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.tools import PROMPT_TAIL


@dataclass(frozen=True, slots=True)
class Position:
    """A call may be before token ``position`` of the document, ``offset`` characters into its text, which is the
    prompted text's place number ``place``."""

    place: int
    position: int
    offset: int


@dataclass(frozen=True, slots=True)
class PromptedDocument:
    """What the model reads behind the prompt's shared part, and the positions in it; ``left_out`` counts the tokens
    at the text's end that did not fit."""

    text: PromptedText
    positions: tuple[Position, ...]
    left_out: int


def prompted(text: str, tokenizer: ByteLevelTokenizer, *, room: int) -> PromptedDocument | None:
    """``text`` for at most ``room`` tokens behind the shared part; ``None`` if it is empty or none of it fits."""
    if not text:
        return None
    tail = tokenizer.encode(PROMPT_TAIL)
    copied = tokenizer.encode(f" {text}")
    # The last token needs no place behind it: there is nothing that a call there could help with.
    fitting = min(len(copied), (room - len(tail) + 1) // 2)
    if fitting < 1:
        return None
    shown = copied[:fitting]
    return PromptedDocument(
        PromptedText((*shown, *tail, *shown[:-1]), first=fitting + len(tail)),
        tuple(_positions(text, tokenizer.encode(text), shown, tokenizer)),
        len(copied) - fitting,
    )


def _positions(text: str, own: Sequence[int], shown: Sequence[int], tokenizer: ByteLevelTokenizer) -> list[Position]:
    characters = _character_borders(text)
    own_borders = {border: position for position, border in enumerate(_borders(own, tokenizer))}
    found: dict[int, Position] = {}
    for place, border in enumerate(_borders(shown, tokenizer)):
        at = max(0, border - 1)  # without the space
        if at in own_borders and at in characters:
            # Where the space is a token of its own, a call is before it, as in a prompt's demonstrations.
            found.setdefault(at, Position(place, own_borders[at], characters[at]))
    return list(found.values())


def begins_word(text: str, at: int) -> bool:
    """Whether a word begins at character ``at``: its space is part of it, as in the vocabulary of GPT-2."""
    return at == 0 or text[at - 1] == "\n" or (text[at].isspace() and not text[at - 1].isspace())


def _borders(ids: Sequence[int], tokenizer: ByteLevelTokenizer) -> list[int]:
    """How many bytes are before each token."""
    lengths = [len(tokenizer.token_bytes(token)) for token in ids]
    return [0, *accumulate(lengths[:-1])]


def _character_borders(text: str) -> dict[int, int]:
    """The characters that begin so many bytes into the text."""
    widths = (len(character.encode()) for character in text)
    return {border: offset for offset, border in enumerate(accumulate(widths, initial=0))}
