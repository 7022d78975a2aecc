"""What the heuristics count as a token: a token of the model that will read the texts, or a word where there is none
yet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from language_model.config import CheckpointError
from language_model.tokenizer import read_vocabulary, tokenizer_file

Span = tuple[int, int]
TokenSpans = Callable[[str], Sequence[Span]]
"""Where the tokens of a text begin and end, in characters, in order."""

_WORD: Final = re.compile(r"\w+|[^\w\s]")


def word_spans(text: str) -> list[Span]:
    """Words and signs, each a token."""
    return [match.span() for match in _WORD.finditer(text)]


def model_spans(path: Path) -> TokenSpans:
    """Tokens of the ``tokenizer.json`` or ``tokenizer.model`` at ``path`` (or in that folder).

    Raises:
        ValueError: if there is none.
    """
    file = (tokenizer_file(path) or path / "tokenizer.json") if path.is_dir() else path
    try:
        tokenizer = read_vocabulary(file)
    except CheckpointError as error:
        raise ValueError(f"--tokenizer: {file} is no tokenizer.json ({error})") from None

    def spans(text: str) -> Sequence[Span]:
        # A character of several bytes may be several tokens with one span.
        return list(tokenizer.encode(text, add_special_tokens=False).offsets)

    return spans
