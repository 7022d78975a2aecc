"""Open questions: WebQuestions (Berant et al., 2013), NQ-open (Kwiatkowski et al., 2019; Lee et al., 2019), TriviaQA
(Joshi et al., 2017)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.readers.files import Fields, json_array, json_lines, json_object, suite_of

_DESCRIPTION: Final = re.compile(r'\(description\s+(?:"((?:[^"\\]|\\.)*)"|([^()"]+?))\s*\)')
NO_ANSWER: Final = "there is no answer"


def read_web_questions(paths: Sequence[Path]) -> LoadedSuite:
    """WebQuestions: JSON arrays, with ``utterance`` and ``targetValue`` as it was released, or re-keyed with ``qText``
    and ``answers``."""

    def example(row: Fields) -> Example | None:
        released = "targetValue" in row.fields
        answers = _described(row.get("targetValue", str)) if released else row.strings("answers")
        if not answers:
            return None
        name = f"{row.file}-{row.number}" if released else row.get("qId", str)
        return Example(name, row.get("utterance" if released else "qText", str), answers)

    return suite_of(json_array(paths), example, NO_ANSWER)


def read_nq_open(paths: Sequence[Path]) -> LoadedSuite:
    """NQ-open: JSON lines with ``question`` and ``answer``, a list."""

    def example(row: Fields) -> Example:
        return Example(f"{row.file}-{row.number}", row.get("question", str), _some(row, "answer"))

    return suite_of(json_lines(paths), example)


def read_trivia_qa(paths: Sequence[Path]) -> LoadedSuite:
    """TriviaQA: the release's JSON (``Data``, with ``Answer``'s ``Value`` and ``Aliases``), or JSON lines with
    ``golden_answers``."""
    examples: list[Example] = []
    for path in paths:
        if path.suffix == ".jsonl":
            for row in json_lines([path]):
                answers = _some(row, "golden_answers")
                examples.append(Example(row.get("id", str), _plain(row.get("question", str)), answers))
            continue
        for row in json_object(path).rows("Data"):
            answer = Fields(row.get("Answer", dict), f"{row.where}: Answer")
            answers = tuple(dict.fromkeys((answer.get("Value", str), *answer.strings("Aliases"))))
            examples.append(Example(row.get("QuestionId", str), _plain(row.get("Question", str)), answers))
    return LoadedSuite(tuple(examples), {})


def _some(row: Fields, field: str) -> tuple[str, ...]:
    answers = row.strings(field)
    if not answers:
        raise SuiteError(f"{row.where}: {field}: must hold at least one answer")
    return answers


def _described(target: str) -> tuple[str, ...]:
    """The answers in ``(list (description "Jazmyn Bieber") (description English))``."""
    return tuple((quoted or bare).replace('\\"', '"') for quoted, bare in _DESCRIPTION.findall(target))


def _plain(question: str) -> str:
    """``question`` without the quotation marks of a table's cell, which are doubled inside."""
    question = question.strip()
    if len(question) > 1 and question[0] == question[-1] == '"' and '""' in question[1:-1]:
        return question[1:-1].replace('""', '"')
    return question
