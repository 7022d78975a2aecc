"""How many calls are right, before the filter and after it, where the calls that help are known.

They are known of generated texts only (``truth.jsonl``; see ``training_jobs.corpus.generated``); no stage reads them. A
call is right if its result has the answer that its tool is to give there, and it stands right before that answer or
between two words of it: where a translation begins as many do, the call helps with what is the sentence's own."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.table import Table

from training_jobs.annotate.prompted import begins_word
from training_jobs.demonstrations.execute import says
from training_jobs.merge.kept import records
from training_jobs.merge.paragraphs import paragraph_of, paragraph_start
from training_jobs.records import KEPT, Annotated, Candidate
from training_jobs.stages.errors import StageError


@dataclass(frozen=True, slots=True)
class _Truth:
    tool: str
    offset: int
    answer: str


@dataclass(slots=True)
class Precision:
    """Counts of one tool's calls."""

    proposed: int = 0
    proposed_right: int = 0
    kept: int = 0
    kept_right: int = 0

    @property
    def before(self) -> float:
        """Of the calls that were proposed, the share that is right; 0 if there are none."""
        return self.proposed_right / self.proposed if self.proposed else 0.0

    @property
    def after(self) -> float:
        """Of the calls that were kept, the share that is right; 0 if there are none."""
        return self.kept_right / self.kept if self.kept else 0.0

    def as_json(self) -> dict[str, int | float]:
        """Counts and shares."""
        return {**asdict(self), "precision_before": round(self.before, 4), "precision_after": round(self.after, 4)}


def measure(files: Mapping[str, Path], truth: Path, *, reach: int = 0) -> dict[str, Precision]:
    """Judge each tool's filtered calls by ``truth``. A call may stand up to ``reach`` characters before the answer too.

    Raises:
        StageError: if a file cannot be read.
    """
    known = _read(truth)
    starts = _paragraph_starts(files)
    found: dict[str, Precision] = {}
    for tool, path in files.items():
        found[tool] = counts = Precision()
        for _, record in records(path):
            whole, start = starts.get(record.document.id, (record.document.id, 0))
            truths = [one for one in known.get(whole, ()) if one.tool == tool]
            for candidate in record.candidates:
                right = _right(record.document.text, candidate, start, truths, reach)
                counts.proposed += 1
                counts.proposed_right += right
                counts.kept += candidate.verdict == KEPT
                counts.kept_right += right and candidate.verdict == KEPT
    return found


def _right(text: str, candidate: Candidate, start: int, truths: Iterable[_Truth], reach: int) -> bool:
    at = start + candidate.offset
    between_words = begins_word(text, candidate.offset)
    return any(
        (one.offset - reach <= at <= one.offset or (between_words and one.offset < at < one.offset + len(one.answer)))
        and candidate.output is not None
        and says(candidate.output, one.answer)
        for one in truths
    )


def printed(found: Mapping[str, Precision]) -> Table:
    """The table for a terminal."""
    table = Table(title="calls at a right place with the right answer", box=None, pad_edge=False)
    for number, name in enumerate(["tool", "proposed", "right", "kept", "right", "precision before", "after"]):
        table.add_column(name, justify="right" if number else "left")
    for tool, one in found.items():
        counts = (f"{number:,}" for number in (one.proposed, one.proposed_right, one.kept, one.kept_right))
        table.add_row(tool, *counts, f"{one.before:.2f}", f"{one.after:.2f}")
    return table


def _read(path: Path) -> dict[str, list[_Truth]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); correct --truth") from error
    known: dict[str, list[_Truth]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            told = json.loads(line)
            known[told["id"]] = [_Truth(call["tool"], call["offset"], call["answer"]) for call in told["calls"]]
        except (ValueError, KeyError, TypeError) as error:
            raise StageError(f"{path}:{number}: is no line of a truth.jsonl ({error!r})") from error
    return known


def _paragraph_starts(files: Mapping[str, Path]) -> dict[str, tuple[str, int]]:
    """Of each document that is a paragraph of another: that one's id, and where in it the paragraph begins."""
    paragraphs: defaultdict[str, list[tuple[str, int, str]]] = defaultdict(list)
    for record in _all(files):
        if (of := paragraph_of(record.document.id)) is not None:
            paragraphs[of[0]].append((record.document.id, of[1], record.document.text))
    starts = {}
    for record in _all(files) if paragraphs else ():
        for id_, number, text in paragraphs.get(record.document.id, ()):
            start = paragraph_start(record.document.text, number, text)
            if start is not None:
                starts[id_] = record.document.id, start
    return starts


def _all(files: Mapping[str, Path]) -> Iterable[Annotated]:
    return (record for path in files.values() for _, record in records(path))
