"""MLQA (Lewis et al., 2020): an English paragraph, and a question about it in another language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.readers.files import Fields, json_object

LANGUAGES: Final = ("es", "de", "hi", "vi", "zh", "ar")
"""The paper's languages, in the order of its table 6."""
_ENGLISH: Final = "question-en.json"
NO_ENGLISH: Final = "there is no English wording"


def read_mlqa(paths: Sequence[Path]) -> LoadedSuite:
    """``{split}-context-en-question-{language}.json``, in SQuAD's layout."""
    return LoadedSuite(tuple(example for path in paths for example in _examples(path)), {})


def read_mlqa_all_english(paths: Sequence[Path]) -> LoadedSuite:
    """The questions of a language's files, in the English of the files that are named ``...question-en.json``.

    MLQA gives a question one id in all languages; one that has no English wording is left out.

    Raises:
        SuiteError: if one of the two kinds of file is missing.
    """
    english = [path for path in paths if path.name.endswith(_ENGLISH)]
    foreign = [path for path in paths if path not in english]
    if not english or not foreign:
        raise SuiteError(f"{paths[0]}: all English needs a language's file and one that ends in {_ENGLISH}: give both")
    wording = {example.id: example.text for path in english for example in _examples(path)}
    examples, left_out = [], 0
    for example in (one for path in foreign for one in _examples(path)):
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


def _answers(question: Fields) -> tuple[str, ...]:
    return tuple(dict.fromkeys(answer.get("text", str) for answer in question.rows("answers")))
