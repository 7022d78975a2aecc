"""Reading files of records, with errors that name file, line and field."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from training_jobs.evaluate.example import Example, LoadedSuite, SuiteError

T = TypeVar("T")


class Fields:
    """A record and where it is; its fields are asked for with the type that they must have. ``file`` is the stem of its
    file's name, ``number`` counts the file's records from 1."""

    def __init__(self, fields: Mapping[str, Any], where: str, file: str = "", number: int = 0) -> None:
        self.fields, self.where, self.file, self.number = fields, where, file, number

    def get(self, name: str, kind: type[T] | tuple[type[T], ...]) -> T:
        """The field ``name``.

        Raises:
            SuiteError: if it is missing or of another type.
        """
        value = self.fields.get(name)
        if isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool):
            return value
        kinds = kind if isinstance(kind, tuple) else (kind,)
        expected = " or ".join(one.__name__ for one in kinds)
        found = "is missing" if name not in self.fields else f"must be {expected}, not {type(value).__name__}"
        raise SuiteError(f"{self.where}: {name}: {found}; is this the file of another suite?")

    def rows(self, name: str) -> list[Fields]:
        """The records in the list ``name``."""
        return [_row(one, f"{self.where}: {name}[{at}]") for at, one in enumerate(self.get(name, list))]

    def strings(self, name: str) -> tuple[str, ...]:
        """The strings in the list ``name``, without empty ones."""
        found = self.get(name, list)
        for at, one in enumerate(found):
            if not isinstance(one, str):
                raise SuiteError(f"{self.where}: {name}[{at}]: must be str, not {type(one).__name__}")
        return tuple(one for one in found if one.strip())


def suite_of(
    rows: Iterable[Fields], example: Callable[[Fields], Example | None], why_not: str = "cannot be asked"
) -> LoadedSuite:
    """The ``example`` of each of ``rows``; one that has none is left out, for the reason ``why_not``."""
    made = [example(row) for row in rows]
    found = tuple(one for one in made if one is not None)
    return LoadedSuite(found, {why_not: len(made) - len(found)})


def json_lines(paths: Iterable[Path]) -> Iterator[Fields]:
    """The records of files of JSON lines.

    Raises:
        SuiteError: if one cannot be read, a line is no JSON object, or a file has no line at all.
    """
    for path in paths:
        # Not str.splitlines: a JSON string may hold Unicode's other line ends.
        lines = [(at, line) for at, line in enumerate(text_of(path).split("\n"), start=1) if line.strip()]
        if not lines:
            raise SuiteError(f"{path}: holds no record; fetch it again")
        for number, (at, line) in enumerate(lines, start=1):
            yield _row(_parsed(line, f"{path}:{at}"), f"{path}:{at}", path.stem, number)


def json_array(paths: Iterable[Path]) -> Iterator[Fields]:
    """The records of files that are one JSON array each."""
    for path in paths:
        records = _parsed(text_of(path), str(path))
        if not isinstance(records, list) or not records:
            raise SuiteError(f"{path}: must be a JSON array with records in it")
        for number, record in enumerate(records, start=1):
            yield _row(record, f"{path}: record {number}", path.stem, number)


def json_object(path: Path) -> Fields:
    """A file that is one JSON object."""
    return _row(_parsed(text_of(path), str(path)), str(path))


def text_of(path: Path) -> str:
    """The file's text.

    Raises:
        SuiteError: if it cannot be read or is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SuiteError(f"{path}: cannot be read ({error.strerror or error}); correct --data or --file") from error
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path}: is not UTF-8 text ({error.reason} at byte {error.start}); fetch it again") from error


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SuiteError(f"{where}: is not JSON ({error}); fetch it again") from error


def _row(record: Any, where: str, file: str = "", number: int = 0) -> Fields:
    if not isinstance(record, Mapping):
        raise SuiteError(f"{where}: must be a JSON object, not {type(record).__name__}")
    return Fields(record, where, file, number)
