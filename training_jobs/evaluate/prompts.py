"""The zero-shot prompts of the paper (appendix C), by the form of what is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from training_jobs.evaluate.example import Example, Prompts

Form = Literal["completion", "word problem", "question", "question over a paragraph", "as it is"]
"""How an example is asked: appendix C.1 to C.4, or with its own text and nothing else."""


def _completion(example: Example) -> str:
    return f"Please complete the following text so that it is factually correct: {example.text}"


def _word_problem(example: Example) -> str:
    return f"{_before(example.context)}{example.text} The answer is"


def _question(example: Example) -> str:
    return f"Answer the following question: {_asked(example.text)}"


def _over_paragraph(example: Example) -> str:
    return (
        f"Your task is to answer a question based on the following paragraph: {example.context} "
        f"Now answer the following question in English: {example.text}"
    )


_FORMS: Final[Mapping[Form, Callable[[Example], str]]] = {
    "completion": _completion,
    "word problem": _word_problem,
    "question": _question,
    "question over a paragraph": _over_paragraph,
    "as it is": lambda example: example.text,
}


def prompt_of(example: Example, form: Form, prompts: Prompts = "paper") -> str:
    """The prompt that asks ``example``, without a space at its end.

    A suite without a bare form of its own is asked with its text (and the paragraph or situation before it) alone.
    """
    if prompts == "paper":
        return _FORMS[form](example).rstrip()
    return (example.bare or f"{_before(example.context)}{example.text}").rstrip()


def _before(context: str) -> str:
    return f"{context.strip()} " if context.strip() else ""


def _asked(question: str) -> str:
    """``question`` with a question mark at its end (appendix C.3)."""
    question = question.strip()
    return question if question.endswith(("?", "？", "؟")) else f"{question}?"
