"""MLQA (Lewis et al., 2020): an English paragraph, and a question about it in another language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.example import Example, LoadedSuite
from training_jobs.evaluate.readers.files import Row, json_object

LANGUAGES: Final = ("es", "de", "hi", "vi", "zh", "ar")
"""The paper's languages, in the order of its table 6."""
NO_ENGLISH: Final = "there is no English wording"


def read_mlqa(paths: Sequence[Path]) -> LoadedSuite:
    """``{split}-context-en-question-{language}.json``, in SQuAD's layout."""
    return LoadedSuite(tuple(example for path in paths for example in _examples(path)), {})


def read_mlqa_all_english(paths: Sequence[Path]) -> LoadedSuite:
    """The same questions in English: the first path is a language's file, the second the one with questions in English.

    MLQA gives a question one id in all languages; where the second file lacks it, it is left out."""
    foreign, english = paths
    wording = {example.id: example.text for example in _examples(english)}
    examples, left_out = [], 0
    for example in _examples(foreign):
        if example.id in wording:
            examples.append(Example(example.id, wording[example.id], example.answers, context=example.context))
        else:
            left_out += 1
    return LoadedSuite(tuple(examples), {NO_ENGLISH: left_out} if left_out else {})


def _examples(path: Path) -> Iterator[Example]:
    for article in json_object(path).rows("data"):
        for paragraph in article.rows("paragraphs"):
            context = paragraph.get("context", str).strip()
            for question in paragraph.rows("qas"):
                yield Example(
                    question.get("id", str),
                    question.get("question", str).strip(),
                    _answers(question),
                    context=context,
                )


def _answers(question: Row) -> tuple[str, ...]:
    return tuple(dict.fromkeys(answer.get("text", str) for answer in question.rows("answers")))
