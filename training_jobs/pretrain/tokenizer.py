"""A byte-level BPE of 2,048 tokens for the bundled model (GPT-2's kind; Radford et al., 2019).

Text is cut before merging such that what a small model must copy is always spelled in the same tokens: every digit
is a token of its own, and the space before a number or a capitalised word is one too. So ``Ljubljana`` after a
space, after a quotation mark and at the beginning of a line are the same ids, and copying it is one mapping. `` [``,
``[``, ``]``, `` ->`` and ``->`` are single tokens, as they are in GPT-J's vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from language_model.tokenizer import learn_byte_level
from toolformer.model_files.whole import write_whole

END_OF_TEXT: Final = "<|endoftext|>"
VOCAB_SIZE: Final = 2048
CALL_MARKS: Final = (" [", "[", "]", " ->", "->")

_PIECES: Final = "|".join(
    (
        r" ?\[",
        r"\]",
        r" ?->",
        r"\p{N}",
        r" (?=[\p{N}\p{Lu}])",
        r"\p{Lu}\p{L}*",
        r" ?\p{L}+",
        r" ?(?:(?!->)[^\s\p{L}\p{N}\[\]])+",
        r"\s+",
    )
)
# The marks occur as often as the commonest words here, so that their merges are always learned.
_MARK_REPEATS: Final = 2_000


def train_tokenizer(texts: Iterable[str], *, vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Learn the vocabulary from ``texts``; the same texts give the same vocabulary.

    Raises:
        ValueError: if a call mark did not become one token, because ``vocab_size`` is too small.
    """
    tokenizer = learn_byte_level(_with_marks(texts), _PIECES, vocab_size=vocab_size, special_tokens=[END_OF_TEXT])
    for mark in CALL_MARKS:
        if len(tokenizer.encode(mark).ids) != 1:
            raise ValueError(f"vocab_size {vocab_size} is too small: {mark!r} is not a single token")
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, directory: Path) -> None:
    """Write ``directory/tokenizer.json``; a reader never sees half a file."""
    directory.mkdir(parents=True, exist_ok=True)
    write_whole(directory / "tokenizer.json", tokenizer.to_str(pretty=True))


def _with_marks(texts: Iterable[str]) -> Iterator[str]:
    yield from texts
    for _ in range(_MARK_REPEATS):
        yield from CALL_MARKS
