"""How many of the calls that the pipeline proposes, and keeps, are right, by what the generator of the texts knows."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from training_jobs.corpus.readers import CorpusError
from training_jobs.demonstrations.execute import says
from training_jobs.records import KEPT, Annotated, Candidate

WORDS_BEFORE: Final = 2
"""A call as many words before the answer still helps with it: the filter looks five tokens ahead."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class TrueCall:
    """A call that helps: right before character ``offset``, and what ``answer`` it gives."""

    offset: int
    answer: str


Truth = Mapping[tuple[str, str], Sequence[TrueCall]]
"""True calls by document id and tool."""


@dataclass(slots=True)
class Precision:
    """Calls of one tool. ``places`` are those where a call helps, ``found`` those with a right call among the
    candidates, ``found_kept`` among the kept."""

    candidates: int = 0
    right: int = 0
    kept: int = 0
    kept_right: int = 0
    places: int = 0
    found: int = 0
    found_kept: int = 0

    @property
    def before(self) -> float | None:
        """Precision before the filter; ``None`` where there is no candidate."""
        return self.right / self.candidates if self.candidates else None

    @property
    def after(self) -> float | None:
        """Precision after the filter; ``None`` where nothing is kept."""
        return self.kept_right / self.kept if self.kept else None

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "precision_before": self.before, "precision_after": self.after}


def load_truth(path: Path) -> Truth:
    """The true calls of a generated corpus.

    Raises:
        CorpusError: if the file cannot be read or is no truth.
    """
    found: dict[tuple[str, str], list[TrueCall]] = defaultdict(list)
    try:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            try:
                record = json.loads(line)
                for call in record["calls"]:
                    found[record["id"], call["tool"]].append(TrueCall(int(call["offset"]), str(call["answer"])))
            except (ValueError, KeyError, TypeError) as error:
                raise CorpusError(
                    f"{path}:{number}: is no line of a truth ({error!r}); name the truth.jsonl that generate wrote"
                ) from error
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read ({error.strerror or error}); correct the path") from error
    return found


def is_right(text: str, candidate: Candidate, true_call: TrueCall, *, words_before: int = WORDS_BEFORE) -> bool:
    """Whether the candidate stands before the answer, at most so many words earlier, and its output says the answer.

    The space before the answer may be on either side of the call.
    """
    if candidate.output is None or not says(candidate.output, true_call.answer):
        return False
    if candidate.offset > true_call.offset:
        return candidate.offset == true_call.offset + 1
    return len(_WORD.findall(text[candidate.offset : true_call.offset])) <= words_before


def measure(annotated: Iterable[Annotated], truth: Truth, *, words_before: int = WORDS_BEFORE) -> dict[str, Precision]:
    """Precision by tool, of candidates that were executed and (for ``kept``) judged."""
    found: dict[str, Precision] = defaultdict(Precision)
    for one in annotated:
        tool, text = found[one.tool], one.document.text
        places = truth.get((one.document.id, one.tool), ())
        hit: set[TrueCall] = set()
        hit_kept: set[TrueCall] = set()
        for candidate in one.candidates:
            right = {place for place in places if is_right(text, candidate, place, words_before=words_before)}
            kept = candidate.verdict == KEPT
            hit |= right
            hit_kept |= right if kept else set()
            tool.candidates += 1
            tool.right += bool(right)
            tool.kept += kept
            tool.kept_right += kept and bool(right)
        tool.places += len(places)
        tool.found += len(hit)
        tool.found_kept += len(hit_kept)
    return dict(found)


def read_annotated(paths: Iterable[Path]) -> Iterable[Annotated]:
    """The records of annotated files, in order.

    Raises:
        CorpusError: if a file cannot be read.
        RecordError: if a line is no record.
    """
    for path in paths:
        try:
            with path.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    yield Annotated.from_line(line, f"{path}:{number}")
        except OSError as error:
            raise CorpusError(f"{path}: cannot be read ({error.strerror or error}); correct the path") from error
