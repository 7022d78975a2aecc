"""The bundled reader's vocabulary: a byte-level BPE learned from its corpus.

Retriever and reader share the pieces; each has a tokenizer file of its own, since BERT and T5 frame a text differently.
Numbers are cut into groups of at most three digits, and a mark goes with what follows it (``1`` ``,144`` ``,700``):
a model that copies looks for what stood behind the last token, and behind a bare comma of a number stands too much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from tokenizers import Tokenizer, processors

from language_model.tokenizer import learn_byte_level
from services.question_answering.formats import ANSWER_MARK, PAD, gap_mark

END: Final = "</s>"
BEGIN_TEXT: Final = "[CLS]"
END_TEXT: Final = "[SEP]"
SPECIAL: Final = (PAD, END, ANSWER_MARK, BEGIN_TEXT, END_TEXT)
VOCAB_SIZE: Final = 6144

_BEFORE: Final = r" ?[^\s\p{L}\p{N}]?"
_PIECES: Final = rf"{_BEFORE}\p{{N}}{{1,3}}|{_BEFORE}\p{{Lu}}\p{{L}}*|{_BEFORE}\p{{L}}+| ?[^\s\p{{L}}\p{{N}}]|\s+"


def learn(texts: Iterable[str], *, vocab_size: int = VOCAB_SIZE, gaps: int = 0) -> tuple[Tokenizer, Tokenizer]:
    """The retriever's and the reader's tokenizer, learned from ``texts``; the same texts give the same ones. They have
    marks for so many ``gaps``."""
    special = [*SPECIAL, *map(gap_mark, range(1, gaps + 1))]
    tokenizer = learn_byte_level(texts, _PIECES, vocab_size=vocab_size, special_tokens=special)
    return _framed(tokenizer, f"{BEGIN_TEXT} $A {END_TEXT}"), _framed(tokenizer, f"$A {END}")


def _framed(tokenizer: Tokenizer, template: str) -> Tokenizer:
    """A copy of ``tokenizer`` that puts its special tokens around each text."""
    framed: Tokenizer = Tokenizer.from_str(json.dumps(json.loads(tokenizer.to_str())))
    specials = [(token, framed.token_to_id(token)) for token in SPECIAL if token in template]
    framed.post_processor = processors.TemplateProcessing(single=template, special_tokens=specials)
    return framed
