"""What decoding needs to know of a vocabulary and of a tool's call text; made once a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from toolformer.api_call import OPEN, Tokenizer

BARE_OPEN: Final = OPEN.strip()


class VocabularyTokenizer(Tokenizer, Protocol):
    """A tokenizer whose whole vocabulary can be walked."""

    @property
    def vocab_size(self) -> int: ...


class PromptTokenizer(VocabularyTokenizer, Protocol):
    """One that can tell that a text is too long without encoding it."""

    def fewest_tokens(self, text: str) -> int:
        """No encoding of ``text`` has fewer tokens."""
        ...


class CallForm(Protocol):
    """What decoding needs to know of a tool; :class:`toolformer.tools.Tool` has it."""

    @property
    def quoted(self) -> bool: ...

    @property
    def max_input_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class CallVocabulary:
    """The tokens of a vocabulary that matter to calls; made once a model.

    ``start_ids``: the API-start tokens `` [`` and ``[``, the preferred one first. ``opening_ids``: every token
    after which a call may have begun, so that banning them bans calls. ``end_ids``: end of text."""

    tokenizer: Tokenizer
    start_ids: tuple[int, ...]
    opening_ids: tuple[int, ...]
    end_ids: frozenset[int]

    @classmethod
    def of(cls, tokenizer: VocabularyTokenizer, end_ids: Sequence[int]) -> CallVocabulary:
        encoded = (tokenizer.encode(OPEN), tokenizer.encode(BARE_OPEN))
        opening = []
        for token in range(tokenizer.vocab_size):
            _, bracket, rest = tokenizer.token_bytes(token).rpartition(b"[")
            if bracket and re.fullmatch(rb"(?:[A-Za-z][A-Za-z0-9_]*(?:\(.*)?)?", rest, re.DOTALL):
                opening.append(token)
        starts = tuple(ids[0] for ids in encoded if len(ids) == 1)
        return cls(tokenizer, starts, tuple(opening), frozenset(end_ids))
