"""A file of somebody's own prompts: JSON lines with `id`, `kind`, `prompt`, `tool` and `accept`.

`accept` holds regular expressions, one of which must match in the visible text: without regard to case, not inside a
longer word or number. In them `{today:%A}` is today as `strftime` writes it, `{today+7:%B}` a week later, `{year}` this
year and `{year-1990}` the years since 1990. `tool` is the expected tool, a list of tools any of which fits, `"none"`
where no tool may be called, or is left out. `date` (`YYYY-MM-DD`) takes the place of the day on which it is asked.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError
from training_jobs.evaluate.readers.files import Fields, json_lines, suite_of

NO_TOOL: Final = "none"
_FIELDS: Final = frozenset({"id", "kind", "prompt", "tool", "accept", "date"})
_PLACEHOLDER: Final = re.compile(r"\{(?:today([+-]\d+)?:([^{}]+)|year([+-]\d+)?)\}")
_ANY_TEXT: Final = r"\S.*"
"""Where no tool fits there is no right answer, only an empty one is wrong."""


def read_question_file(paths: Sequence[Path]) -> LoadedSuite:
    """The prompts of the files.

    Raises:
        SuiteError: naming file, line, field and remedy, if one is not as the module says.
    """
    return suite_of(json_lines(paths), lambda row: _example(row, dt.date.today()))


def _example(row: Fields, today: dt.date) -> Example:
    if unknown := sorted(set(row.fields) - _FIELDS):
        raise SuiteError(f"{row.where}: {unknown[0]}: is not a field; the fields are {', '.join(sorted(_FIELDS))}")
    date = _date(row) or today
    tools = _tools(row)
    accept = row.strings("accept") if row.fields.get("accept") or tools != () else (_ANY_TEXT,)
    return Example(
        row.get("id", str),
        row.get("prompt", str),
        tuple(_filled(pattern, date, row) for pattern in accept),
        date=date,
        split=row.get("kind", str),
        tools=tools,
    )


def _date(row: Fields) -> dt.date | None:
    if row.fields.get("date") is None:
        return None
    try:
        return dt.date.fromisoformat(row.get("date", str))
    except ValueError as error:
        raise SuiteError(f"{row.where}: date: {error}; write it as YYYY-MM-DD") from error


def _tools(row: Fields) -> tuple[str, ...] | None:
    named = row.fields.get("tool")
    if named is None:
        return None
    tools = (row.get("tool", str),) if isinstance(named, str) else row.strings("tool")
    return () if tools == (NO_TOOL,) else tools


def _filled(pattern: str, today: dt.date, row: Fields) -> str:
    def value(found: re.Match[str]) -> str:
        days, form, years = found.groups()
        if form is None:
            return str(abs(today.year + int(years or 0)))
        return re.escape((today + dt.timedelta(days=int(days or 0))).strftime(form))

    filled = _PLACEHOLDER.sub(value, pattern)
    try:
        re.compile(filled)
    except re.error as error:
        raise SuiteError(f"{row.where}: accept: {pattern!r} is not a regular expression ({error})") from error
    return filled
