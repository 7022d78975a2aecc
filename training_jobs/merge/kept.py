"""The kept calls of every text, gathered from the filtered files of all tools.

Only kept calls and places in files are held in memory, no texts: of a hundred texts with candidates a few have a call
that is kept. A paragraph that stood alone for a tool (machine translation reads paragraphs, ``ID#N``) is put back into
its document where another tool's file has that.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from training_jobs.errors import StageError
from training_jobs.merge.choosing import KeptCall, goes_on_with, is_late, unsaid
from training_jobs.records import BELOW, KEPT, Annotated, Document, RecordError


@dataclass(frozen=True, slots=True)
class _Place:
    file: Path
    offset: int


@dataclass(slots=True)
class KeptTexts:
    """By a text's id: its kept calls, and where the text is."""

    calls: dict[str, list[KeptCall]] = field(default_factory=lambda: defaultdict(list))
    _places: dict[str, _Place] = field(default_factory=dict)

    def document(self, id_: str) -> Document:
        """The text with this id."""
        place = self._places[id_]
        with place.file.open("rb") as file:
            file.seek(place.offset)
            return Annotated.from_line(file.readline(), str(place.file)).document


def gather(files: Mapping[str, Path], saw: Callable[[Annotated], None], *, strict: bool = False) -> KeptTexts:
    """Read each tool's filtered file; ``saw`` is called with each record. ``strict``: see `MergeRule`.

    Raises:
        StageError: if a file cannot be read, is another tool's, or has not been filtered.
    """
    kept = KeptTexts()
    for tool, path in files.items():
        for offset, record in records(path):
            if record.tool != tool:
                raise StageError(f"{path}: tool: is {record.tool!r}, not {tool!r}; run the filter again")
            calls = list(_kept(record, path, strict))
            if calls:
                kept.calls[record.document.id] += calls
                kept._places.setdefault(record.document.id, _Place(path, offset))
            saw(record)
    _put_paragraphs_back(kept, files)
    return kept


def records(path: Path) -> Iterator[tuple[int, Annotated]]:
    """The records of a filtered file, each behind its offset in bytes.

    Raises:
        StageError: if the file cannot be read, or a line is no such record.
    """
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield offset, Annotated.from_line(line, f"{path}:{number}")
                offset += len(line)
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); run the filter first") from error
    except RecordError as error:
        raise StageError(str(error)) from error


def _kept(record: Annotated, path: Path, strict: bool) -> Iterator[KeptCall]:
    """The kept calls; unless ``strict`` without those that are late, and each also where it was proposed and the text
    goes on with its output, if it gains less there."""
    kept = {candidate.input for candidate in record.candidates if candidate.verdict == KEPT}
    for candidate in record.candidates:
        if candidate.verdict is None:
            raise StageError(f"{path}: candidates.verdict: is missing in {record.document.id!r}; run the filter first")
        if candidate.verdict not in (KEPT, BELOW) or candidate.input not in kept:
            continue
        if candidate.output is None or candidate.gain is None:
            raise StageError(f"{path}: {record.document.id!r} keeps a call without output or gain; filter again")
        before, behind = record.document.text[: candidate.offset], record.document.text[candidate.offset :]
        if not strict and is_late(before, behind, candidate.input, candidate.output):
            continue
        foretells = goes_on_with(behind, candidate.output)
        if candidate.verdict == KEPT or (foretells and not strict):
            asked = candidate.input
            yield KeptCall(
                record.tool, candidate.offset, asked, candidate.output, candidate.gain, foretells, unsaid(before, asked)
            )


def _put_paragraphs_back(kept: KeptTexts, files: Mapping[str, Path]) -> None:
    wholes: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for id_ in kept.calls:
        if (found := paragraph_of(id_)) is not None:
            whole, number = found
            wholes[whole].append((id_, number))
    missing = wholes.keys() - kept._places.keys()
    for path in files.values():
        for offset, record in records(path) if missing else ():
            if record.document.id in missing:
                missing.discard(record.document.id)
                kept._places[record.document.id] = _Place(path, offset)
    for whole, paragraphs in wholes.items():
        if whole in kept._places:
            text = kept.document(whole).text
            for id_, number in paragraphs:
                _put_back(kept, id_, whole, paragraph_start(text, number, kept.document(id_).text))


def _put_back(kept: KeptTexts, id_: str, whole: str, start: int | None) -> None:
    # Where the text does not fit, the "#" belongs to an id of somebody else's, and the text stays what it is.
    if start is not None:
        kept.calls[whole] += [replace(call, offset=start + call.offset) for call in kept.calls.pop(id_)]


_PARAGRAPH: Final = re.compile(r"(.+)#([1-9]\d*)", re.DOTALL)


def paragraph_of(id_: str) -> tuple[str, int] | None:
    """The document's id and the paragraph's number, if ``id_`` has the form of a paragraph's, ``ID#N``."""
    found = _PARAGRAPH.fullmatch(id_)
    return (found[1], int(found[2])) if found else None


def paragraph_start(text: str, number: int, paragraph: str) -> int | None:
    """Where the ``number``-th paragraph of ``text`` begins, if it is ``paragraph``; empty lines do not count."""
    at = counted = 0
    for line in text.split("\n"):
        counted += bool(line.strip())
        if counted == number:
            return at if line == paragraph else None
        at += len(line) + 1
    return None
