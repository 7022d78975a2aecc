"""The texts that Atlas' models see: its templates for question answering, as it was trained on them."""

from __future__ import annotations

import re
import string
from typing import Final

from services.question_answering.passages import PagePassage

ANSWER_MARK: Final = "<extra_id_0>"
"""Stands in the prompt where the answer goes, and opens every answer: T5's first sentinel."""
PAD: Final = "<pad>"
"""Fills rows up."""

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def gap_mark(number: int) -> str:
    """What stands for gap ``number`` of a text, and opens what fills it: T5's other sentinels, from 1 on."""
    return f"<extra_id_{number}>"


def prompt(question: str) -> str:
    """What retriever and reader are given for a question."""
    return f"question: {question} answer: {ANSWER_MARK}"


def retriever_text(passage: PagePassage) -> str:
    """A passage as the retriever embeds it."""
    return f"{passage.heading} {passage.text}"


def reader_text(asked: str, passage: PagePassage) -> str:
    """A passage as the reader encodes it, together with the prompt ``asked``."""
    return f"{asked} title: {passage.heading} context: {passage.text}"


def target(answer: str) -> str:
    """An answer as the reader learns to write it; where there is none, the mark alone."""
    return f"{ANSWER_MARK} {answer}".rstrip()


def says(text: str, answer: str) -> bool:
    """Whether ``text`` says ``answer``: as whole words or a whole number, not as a part of others."""
    before = r"(?<![\w])(?<!\d[.,])" if answer[:1].isalnum() else ""
    after = r"(?![\w]|[.,]\d)" if answer[-1:].isalnum() else ""
    return re.search(before + re.escape(answer) + after, text) is not None


def normalised(answer: str) -> str:
    """``answer`` without what exact match overlooks: case, punctuation, articles, spacing (as SQuAD scores)."""
    bare = answer.lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())
