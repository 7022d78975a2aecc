"""LAMA (Petroni et al., 2019), its SQuAD, Google-RE and T-REx subsets as published; TempLAMA (Dhingra et al., 2022).

Kept is what ends with the mask, so that a model reading left to right can fill it in (section 4.2.1). Facts of T-REx
and Google-RE are asked by LAMA's templates, as its own program asks them; or by the sentences that state them
(``sentences``), of which few end with the mask.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.readers.files import Fields, json_lines, suite_of

_MASK: Final = "[MASK]"
_MASK_FINAL: Final = re.compile(r"\s*\[MASK\]\s*\.?\s*$")
_BLANK_FINAL: Final = re.compile(r"\s*_X_\s*\.?\s*$")
NOT_FINAL: Final = "the mask is not at the end"
_TEMPLATE_FINAL: Final = re.compile(r"\s*\[Y\]\s*\.?\s*$")
_GOOGLE_RE: Final = {
    "date_of_birth_test": "[X] (born [Y]).",
    "place_of_birth_test": "[X] was born in [Y] .",
    "place_of_death_test": "[X] died in [Y] .",
}
"""LAMA's templates; those of T-REx are in its file of relations, these in its program."""


def read_squad(paths: Sequence[Path]) -> LoadedSuite:
    """``Squad/test.jsonl``: ``masked_sentences``, ``obj_label``."""
    return suite_of(json_lines(paths), lambda row: _masked(row, "id"), NOT_FINAL)


def read_google_re(paths: Sequence[Path]) -> LoadedSuite:
    """``Google_RE/*_test.jsonl``, a fact a line, each asked by LAMA's template of its file's relation."""
    if unknown := [path for path in paths if path.stem not in _GOOGLE_RE]:
        raise SuiteError(f"{unknown[0]}: has another name than LAMA's files, by which the template is known: "
                         f"{', '.join(f'{name}.jsonl' for name in _GOOGLE_RE)}")  # fmt: skip

    def example(row: Fields) -> Example | None:
        text = _filled(_GOOGLE_RE[row.file], row)
        if text is None:
            return None
        answers = _each_once(row.get("obj_label", str), *row.strings("obj_aliases"))
        return Example(row.get("uuid", str), text, answers, split=row.file)

    return suite_of(json_lines(paths), example, NOT_FINAL)


def read_t_rex(paths: Sequence[Path]) -> LoadedSuite:
    """``TREx/P*.jsonl``, a fact a line, each asked by its relation's ``template`` in ``relations.jsonl``."""
    rows = list(json_lines(paths))
    templates = {row.get("relation", str): row.get("template", str) for row in rows if "template" in row.fields}

    def example(row: Fields) -> Example | None:
        relation = row.get("predicate_id", str)
        if relation not in templates:
            raise SuiteError(f"{row.where}: predicate_id: there is no template of {relation}; give relations.jsonl too")
        text = _filled(templates[relation], row)
        if text is None:
            return None
        return Example(f"{relation}-{row.get('uuid', str)}", text, (row.get("obj_label", str),), split=relation)

    return suite_of((row for row in rows if "template" not in row.fields), example, NOT_FINAL)


def read_google_re_sentences(paths: Sequence[Path]) -> LoadedSuite:
    """``Google_RE/*_test.jsonl``: as SQuAD, with ``obj_aliases``. Several sentences are one text."""
    return suite_of(json_lines(paths), lambda row: _masked(row, "uuid"), NOT_FINAL)


def read_t_rex_sentences(paths: Sequence[Path]) -> LoadedSuite:
    """``TREx/P*.jsonl``: a fact a line, with the sentences that state it (``evidences``).

    A fact is asked with its first mask-final sentence, one in which the object occurs only once if there is such. Right
    is the object's label and what is in that sentence (``linguist`` where the label is ``linguistics``).
    """

    def example(row: Fields) -> Example | None:
        final = [one for one in row.rows("evidences") if _MASK_FINAL.search(one.get("masked_sentence", str))]
        if not final:
            return None
        chosen = min(final, key=lambda one: one.get("masked_sentence", str).count(_MASK) > 1)
        text = _MASK_FINAL.sub("", chosen.get("masked_sentence", str))
        answers = _each_once(row.get("obj_label", str), chosen.get("obj_surface", str))
        relation = row.get("predicate_id", str)
        return Example(f"{relation}-{row.get('uuid', str)}", text, answers, split=relation)

    return suite_of(json_lines(paths), example, NOT_FINAL)


def read_templama(paths: Sequence[Path]) -> LoadedSuite:
    """TempLAMA: JSON lines with ``query`` (``_X_`` is the blank), ``answer`` (Wikidata names) and ``date`` (a year).

    The text does not say the year: which day it is only the calendar knows, whose clock is at 1 July of it.
    """

    def example(row: Fields) -> Example | None:
        query = row.get("query", str)
        if not _BLANK_FINAL.search(query):
            return None
        answers = _each_once(*(answer.get("name", str) for answer in row.rows("answer")))
        return Example(row.get("id", str), _BLANK_FINAL.sub("", query), answers, date=_middle_of(row))

    return suite_of(json_lines(paths), example, NOT_FINAL)


def _filled(template: str, row: Fields) -> str | None:
    """The template about the row's subject, up to the mask; ``None`` where more follows."""
    if not _TEMPLATE_FINAL.search(template):
        return None
    return _TEMPLATE_FINAL.sub("", template).replace("[X]", row.get("sub_label", str))


def _each_once(*answers: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(answers))


def _masked(row: Fields, name: str) -> Example | None:
    text = " ".join(row.strings("masked_sentences"))
    if not _MASK_FINAL.search(text):
        return None
    aliases = row.strings("obj_aliases") if "obj_aliases" in row.fields else ()
    answers = _each_once(row.get("obj_label", str), *aliases)
    return Example(row.get(name, str), _MASK_FINAL.sub("", text), answers, split=row.file)


def _middle_of(row: Fields) -> dt.date:
    year = row.get("date", str)
    try:
        return dt.date(int(year), 7, 1)
    except ValueError as error:
        raise SuiteError(f"{row.where}: date: must be a year such as '2014', not {year!r}") from error
