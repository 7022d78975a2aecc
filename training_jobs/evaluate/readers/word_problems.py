"""Word problems: ASDiv (Miao et al., 2020), SVAMP (Patel et al., 2021), MAWPS (Koncel-Kedziorski et al., 2016)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.readers.files import Fields, json_array, suite_of, text_of

_PLAIN_NUMBER: Final = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*(?:\([^()]*\))?\s*")
NO_PLAIN_NUMBER: Final = "the answer is no plain number"


def read_asdiv(paths: Sequence[Path]) -> LoadedSuite:
    """``ASDiv.xml``: ``Body``, ``Question``, and ``Answer`` such as ``9 (apples)``.

    Answers that are no plain number (names, times, ratios, several values) cannot be judged by the first number and are
    left out.
    """
    examples, left_out = [], 0
    for path in paths:
        try:
            # The file is a local one, named by the user; expat expands no external entities.
            root = ElementTree.fromstring(text_of(path).encode("utf-8"))
        except ElementTree.ParseError as error:
            raise SuiteError(f"{path}: is not XML ({error}); fetch it again") from error
        problems = list(root.iter("Problem"))
        if not problems:
            raise SuiteError(f"{path}: holds no Problem; is this the file of another suite?")
        for number, problem in enumerate(problems, start=1):
            body, question, answer = (problem.findtext(name) for name in ("Body", "Question", "Answer"))
            if body is None or question is None or answer is None:
                raise SuiteError(f"{path}: problem {number}: Body, Question and Answer must all be there")
            found = _PLAIN_NUMBER.fullmatch(answer)
            if found is None:
                left_out += 1
                continue
            name = problem.get("ID") or str(number)
            examples.append(Example(name, question.strip(), (found[1],), context=body.strip()))
    return LoadedSuite(tuple(examples), {NO_PLAIN_NUMBER: left_out})


def read_svamp(paths: Sequence[Path]) -> LoadedSuite:
    """``SVAMP.json``: ``Body``, ``Question``, ``Answer`` (a number)."""

    def example(row: Fields) -> Example:
        name, question = row.get("ID", str), row.get("Question", str).strip()
        answer = _number(row.get("Answer", (int, float)))
        return Example(name, question, (answer,), context=row.get("Body", str).strip())

    return suite_of(json_array(paths), example)


def read_mawps(paths: Sequence[Path]) -> LoadedSuite:
    """MAWPS with its original field names: ``sQuestion`` and ``lSolutions``, numbers or numeric strings."""

    def example(row: Fields) -> Example | None:
        solutions = row.get("lSolutions", list)
        answer = solutions[0] if len(solutions) == 1 else None
        if isinstance(answer, str) and _PLAIN_NUMBER.fullmatch(answer.replace(",", "")):
            answer = float(answer.replace(",", ""))
        if not isinstance(answer, int | float):
            return None
        return Example(str(row.get("iIndex", int)), row.get("sQuestion", str).strip(), (_number(answer),))

    return suite_of(json_array(paths), example, NO_PLAIN_NUMBER)


def _number(value: float) -> str:
    """``value`` in digits, without a trailing ``.0`` and never as a power of ten."""
    return f"{value:.10f}".rstrip("0").rstrip(".")
