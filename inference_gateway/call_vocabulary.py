"""What decoding needs to know of a vocabulary and of a tool's call text; made once a model."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol

from toolformer.api_call import OPEN, Tokenizer, opening_id

BARE_OPEN: Final = OPEN.strip()
_CACHED_NAMES: Final = 1024
"""Beginnings of names whose tokens are remembered: five tools have about 40."""


class VocabularyTokenizer(Tokenizer, Protocol):
    """A tokenizer whose whole vocabulary can be walked."""

    @property
    def vocab_size(self) -> int: ...


class PromptTokenizer(VocabularyTokenizer, Protocol):
    """What prompts, chats and clients that count tokens need of one besides. Ids that it gave are cached by it."""

    def __hash__(self) -> int: ...

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The special tokens, as they are written, and their ids."""
        ...

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of ``text`` at the beginning of a sequence."""
        ...

    def decode_prompt(self, ids: Sequence[int]) -> str:
        """The reverse of :meth:`encode_prompt`."""
        ...

    def encode_with_special_tokens(self, text: str) -> list[int]:
        """Ids of ``text`` and of what the tokenizer puts around one."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ``ids``; bytes that form no character become U+FFFD."""
        ...

    def written(self, token_id: int) -> str:
        """The token as the vocabulary's file writes it."""
        ...

    def fewest_tokens(self, text: str) -> int:
        """No encoding of ``text`` has fewer tokens."""
        ...


class CallForm(Protocol):
    """What decoding needs to know of a tool; :class:`toolformer.tools.Tool` has it."""

    @property
    def quoted(self) -> bool: ...

    @property
    def max_input_tokens(self) -> int: ...

    @property
    def cost(self) -> float: ...


class NameTokens:
    """Which tokens of a vocabulary can write a tool's name. ``words``: each token's bytes."""

    def __init__(self, words: Sequence[bytes]) -> None:
        self._words = sorted((word, token) for token, word in enumerate(words) if word)
        self.following = lru_cache(_CACHED_NAMES)(self._following)
        """See :meth:`_following`; the latest answers are cached."""

    def _following(self, names: frozenset[str], written: str) -> frozenset[int]:
        """The tokens after which ``written``, the beginning of a call, can still become one of ``names`` and its
        parenthesis; a token may go on behind the parenthesis. None if ``written`` begins no name."""
        found: set[int] = set()
        for name in names:
            head = f"{name}("
            if len(written) < len(head) and head.startswith(written):
                rest = head[len(written) :].encode()
                for length in range(1, len(rest)):
                    found.update(self._between(rest[:length], rest[:length] + b"\0"))
                found.update(self._between(rest, rest[:-1] + b")"))  # `)` is the byte after `(`
        return frozenset(found)

    def _between(self, first: bytes, end: bytes) -> list[int]:
        """The tokens whose bytes are, in order of bytes, ``first`` or later, and before ``end``."""
        at, to = (bisect_left(self._words, (word, -1)) for word in (first, end))
        return [token for _, token in self._words[at:to]]


@dataclass(frozen=True, slots=True)
class CallVocabulary:
    """The tokens of a vocabulary that matter to calls; made once a model.

    ``start_ids``: the API-start token `` [``; empty for a vocabulary that writes it with several. ``openings``: every
    token after which a call may have begun; ``starts``: those that do so with `` [``. ``brackets``: of each token with
    brackets, how many must be open before it for each ``]`` to close one, and how many more are open after it.
    ``closers``: the tokens that need one. ``names``: which tokens write a tool's name. ``end_ids``: end of text.

    Where the marks are special tokens (:class:`~toolformer.api_call.CallMarks`), they alone are brackets: all others
    are text."""

    tokenizer: Tokenizer
    start_ids: tuple[int, ...]
    openings: frozenset[int]
    starts: frozenset[int]
    brackets: Mapping[int, tuple[int, int]]
    closers: frozenset[int]
    names: NameTokens
    end_ids: frozenset[int]

    @classmethod
    def of(cls, tokenizer: VocabularyTokenizer, end_ids: Sequence[int]) -> CallVocabulary:
        words = [tokenizer.token_bytes(token) for token in range(tokenizer.vocab_size)]
        marks = tokenizer.marks
        known = (*marks.opening, *marks.closing) if marks.special else range(len(words))
        brackets = {token: _balance(words[token]) for token in known if set(b"[]") & set(words[token])}
        openings = {token: opened[1] for token in brackets if (opened := _OPENED.search(words[token]))}
        start = opening_id(tokenizer)
        return cls(
            tokenizer,
            start_ids=() if start is None else (start,),
            openings=frozenset(openings),
            starts=frozenset(token for token, space in openings.items() if space),
            brackets=brackets,
            closers=frozenset(token for token, (needed, _) in brackets.items() if needed),
            names=NameTokens(words),
            end_ids=frozenset(end_ids),
        )


_OPENED: Final = re.compile(rb"( ?)\[(?:[A-Za-z][A-Za-z0-9_]*(?:\([^[]*)?)?\Z", re.DOTALL)
"""Text after whose end a call may have begun: a bracket and perhaps the beginning of a call."""


def _balance(word: bytes) -> tuple[int, int]:
    """How many brackets must be open before ``word`` for each ``]`` in it to close one, and how many more are open
    after it."""
    needed = opened = 0
    for byte in word:
        opened += (byte == ord("[")) - (byte == ord("]"))
        needed = max(needed, -opened)
    return needed, opened
