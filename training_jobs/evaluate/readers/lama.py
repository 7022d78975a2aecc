"""LAMA (Petroni et al., 2019), its SQuAD, Google-RE and T-REx subsets as published; TempLAMA (Dhingra et al., 2022).

Kept is what ends with the mask, so that a model reading left to right can fill it in (section 4.2.1). Facts of T-REx
and Google-RE are asked by LAMA's templates, as its own program asks them; or by the sentences that state them
(``sentences``), of which few end with the mask.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.readers.files import Fields, json_lines

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
    return _masked(paths, lambda row: row.get("id", str))


def read_google_re(paths: Sequence[Path]) -> LoadedSuite:
    """``Google_RE/*_test.jsonl``, a fact a line, each asked by LAMA's template of its file's relation."""
    examples, left_out = [], 0
    for path in paths:
        template = _GOOGLE_RE.get(path.stem)
        if template is None:
            raise SuiteError(f"{path}: has another name than LAMA's files, by which the template is known: "
                             f"{', '.join(f'{name}.jsonl' for name in _GOOGLE_RE)}")  # fmt: skip
        for row in json_lines(path):
            if (text := _filled(template, row)) is None:
                left_out += 1
                continue
            answers = tuple(dict.fromkeys((row.get("obj_label", str), *row.strings("obj_aliases"))))
            examples.append(Example(row.get("uuid", str), text, answers, split=path.stem))
    return LoadedSuite(tuple(examples), {NOT_FINAL: left_out})


def read_t_rex(paths: Sequence[Path]) -> LoadedSuite:
    """``TREx/P*.jsonl``, a fact a line, each asked by its relation's ``template`` in ``relations.jsonl``."""
    templates: dict[str, str] = {}
    facts: list[Fields] = []
    for path in paths:
        for row in json_lines(path):
            if "template" in row.fields:
                templates[row.get("relation", str)] = row.get("template", str)
            else:
                facts.append(row)
    examples, left_out = [], 0
    for row in facts:
        relation = row.get("predicate_id", str)
        if relation not in templates:
            raise SuiteError(f"{row.where}: predicate_id: there is no template of {relation}; give relations.jsonl too")
        if (text := _filled(templates[relation], row)) is None:
            left_out += 1
            continue
        examples.append(
            Example(f"{relation}-{row.get('uuid', str)}", text, (row.get("obj_label", str),), split=relation)
        )
    return LoadedSuite(tuple(examples), {NOT_FINAL: left_out})


def read_google_re_sentences(paths: Sequence[Path]) -> LoadedSuite:
    """``Google_RE/*_test.jsonl``: as SQuAD, with ``obj_aliases``. Several sentences are one text."""
    return _masked(paths, lambda row: row.get("uuid", str))


def read_t_rex_sentences(paths: Sequence[Path]) -> LoadedSuite:
    """``TREx/P*.jsonl``: a fact a line, with the sentences that state it (``evidences``).

    A fact is asked with its first mask-final sentence, one in which the object occurs only once if there is such. Right
    is the object's label and what is in that sentence (``linguist`` where the label is ``linguistics``).
    """
    examples, left_out = [], 0
    for path in paths:
        for row in json_lines(path):
            final = [e for e in row.rows("evidences") if _MASK_FINAL.search(e.get("masked_sentence", str))]
            if not final:
                left_out += 1
                continue
            chosen = min(final, key=lambda e: e.get("masked_sentence", str).count(_MASK) > 1)
            text = _MASK_FINAL.sub("", chosen.get("masked_sentence", str))
            answers = (row.get("obj_label", str), chosen.get("obj_surface", str))
            name = f"{row.get('predicate_id', str)}-{row.get('uuid', str)}"
            examples.append(Example(name, text, tuple(dict.fromkeys(answers)), split=row.get("predicate_id", str)))
    return LoadedSuite(tuple(examples), {NOT_FINAL: left_out})


def read_templama(paths: Sequence[Path]) -> LoadedSuite:
    """TempLAMA: JSON lines with ``query`` (``_X_`` is the blank), ``answer`` (Wikidata names) and ``date`` (a year).

    The text does not say the year: which day it is only the calendar knows, whose clock is at 1 July of it.
    """
    examples, left_out = [], 0
    for path in paths:
        for row in json_lines(path):
            query = row.get("query", str)
            if not _BLANK_FINAL.search(query):
                left_out += 1
                continue
            answers = tuple(dict.fromkeys(answer.get("name", str) for answer in row.rows("answer")))
            examples.append(Example(row.get("id", str), _BLANK_FINAL.sub("", query), answers, date=_middle_of(row)))
    return LoadedSuite(tuple(examples), {NOT_FINAL: left_out})


def _filled(template: str, row: Fields) -> str | None:
    """The template about the row's subject, up to the mask; ``None`` where more follows."""
    if not _TEMPLATE_FINAL.search(template):
        return None
    return _TEMPLATE_FINAL.sub("", template).replace("[X]", row.get("sub_label", str))


def _masked(paths: Sequence[Path], name: Callable[[Fields], str]) -> LoadedSuite:
    examples, left_out = [], 0
    for path in paths:
        for row in json_lines(path):
            text = " ".join(row.strings("masked_sentences"))
            if not _MASK_FINAL.search(text):
                left_out += 1
                continue
            aliases = row.strings("obj_aliases") if "obj_aliases" in row.fields else ()
            answers = tuple(dict.fromkeys((row.get("obj_label", str), *aliases)))
            examples.append(Example(name(row), _MASK_FINAL.sub("", text), answers, split=path.stem))
    return LoadedSuite(tuple(examples), {NOT_FINAL: left_out})


def _middle_of(row: Fields) -> dt.date:
    year = row.get("date", str)
    try:
        return dt.date(int(year), 7, 1)
    except ValueError as error:
        raise SuiteError(f"{row.where}: date: must be a year such as '2014', not {year!r}") from error
