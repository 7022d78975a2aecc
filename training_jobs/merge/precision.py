"""How many calls are right, before the filter and after it, where the calls that help are known.

They are known of generated texts only (``truth.jsonl``; see `corpora.web.generated`); no stage reads them. A call is
right if its result has the answer that its tool is to give there, and it is right before that answer or between two
words of it: where a translation begins as many do, the call helps with what is the sentence's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from training_jobs.annotate.prompted import begins_word
from training_jobs.errors import StageError
from training_jobs.merge.choosing import MergeRule, chosen
from training_jobs.merge.kept import gather, paragraph_of, paragraph_start, records
from training_jobs.records import (
    KEPT,
    Annotated,
    Candidate,
    ProposedCall,
    ProposedCalls,
    RecordError,
    records_in,
    says,
)

_USUAL_RULE: Final = MergeRule()


@dataclass(slots=True)
class Precision:
    """Counts of one tool's calls."""

    proposed: int = 0
    proposed_right: int = 0
    kept: int = 0
    kept_right: int = 0
    merged: int = 0
    merged_right: int = 0

    @property
    def before(self) -> float:
        """Of the calls that were proposed, the share that is right; 0 if there are none."""
        return self.proposed_right / self.proposed if self.proposed else 0.0

    @property
    def after(self) -> float:
        """Of the calls that were kept, the share that is right; 0 if there are none."""
        return self.kept_right / self.kept if self.kept else 0.0

    @property
    def in_texts(self) -> float:
        """Of the calls that are in C*, the share that is right; 0 if there are none."""
        return self.merged_right / self.merged if self.merged else 0.0

    def as_json(self) -> dict[str, int | float]:
        """Counts and shares."""
        shares = {"before": self.before, "after": self.after, "in_texts": self.in_texts}
        return {**asdict(self), **{f"precision_{name}": round(share, 4) for name, share in shares.items()}}


def measure(
    files: Mapping[str, Path], truth: Path, *, reach: int = 0, rule: MergeRule = _USUAL_RULE
) -> dict[str, Precision]:
    """Judge each tool's filtered calls by ``truth``, and those that ``rule`` leaves in the texts. A call may stand up
    to ``reach`` characters before the answer too.

    Raises:
        StageError: if a file cannot be read.
    """
    try:
        known = {one.id: one.calls for one in records_in(truth, ProposedCalls)}
    except OSError as error:
        raise StageError(f"{truth}: cannot be read ({error.strerror}); correct --truth") from error
    except RecordError as error:
        raise StageError(f"{error}: is no line of a truth.jsonl") from error
    starts = _paragraph_starts(files)
    merged = {
        (id_, call.tool, call.offset, call.input)
        for id_, calls in gather(files, lambda _: None, strict=rule.strict).calls.items()
        for call in chosen(calls, rule)
    }
    found: dict[str, Precision] = {}
    for tool, path in files.items():
        found[tool] = counts = Precision()
        for _, record in records(path):
            whole, start = starts.get(record.document.id, (record.document.id, 0))
            truths = [one for one in known.get(whole, ()) if one.tool == tool]
            for candidate in record.candidates:
                right = _right(record.document.text, candidate, start, truths, reach)
                kept = candidate.verdict == KEPT
                stays = (whole, tool, start + candidate.offset, candidate.input) in merged
                counts.proposed += 1
                counts.proposed_right += right
                counts.kept += kept
                counts.kept_right += right and kept
                counts.merged += stays
                counts.merged_right += right and stays
    return found


def _right(text: str, candidate: Candidate, start: int, truths: Iterable[ProposedCall], reach: int) -> bool:
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
    columns = ["tool", "proposed", "right", "share", "kept", "right", "share", "in C*", "right", "share"]
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    for tool, one in found.items():
        before = (f"{one.proposed:,}", f"{one.proposed_right:,}", f"{one.before:.2f}")
        after = (f"{one.kept:,}", f"{one.kept_right:,}", f"{one.after:.2f}")
        table.add_row(tool, *before, *after, f"{one.merged:,}", f"{one.merged_right:,}", f"{one.in_texts:.2f}")
    return table


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
