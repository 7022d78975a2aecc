"""Verdicts from losses alone: another threshold needs no model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from toolformer.tools import Tool
from training_jobs.nothing_kept import Fate, Keeping, in_text
from training_jobs.records import BELOW, KEPT, Annotated, Candidate

LOOKS_AHEAD: Final = "looks ahead"
"""The input is in the text, but not before the call: anyone who writes the call there cannot know it."""
NO_RESULT: Final = "no result: {code}"
NOT_EXECUTED: Final = "not executed"
NOT_SCORED: Final = "not scored"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a call must do to be kept: lower the loss by ``gain`` nats (``tau_f``) and, where ``input_from_before``, not
    take its input from behind itself."""

    gain: float
    input_from_before: bool = False

    @classmethod
    def of(cls, tool: Tool, *, tau: float | None = None, cost_weight: float = 0.0) -> Self:
        """The thresholds of ``tool``: ``tau`` (by default the registry's ``tau_f``) and ``cost_weight`` nats for each
        unit of what a call of it costs."""
        threshold = tool.filter_threshold if tau is None else tau
        return cls(threshold + cost_weight * tool.cost, tool.input_from_before)


def judge(annotated: Annotated, thresholds: Thresholds) -> Annotated:
    """``annotated`` with gain and verdict of every candidate; all else stays as it is."""
    judged = tuple(_judged(candidate, annotated.document.text, thresholds) for candidate in annotated.candidates)
    return dataclasses.replace(annotated, candidates=judged)


def gain(candidate: Candidate) -> float | None:
    """``L- - L+`` in nats; ``None`` if the losses are not known."""
    empty, call, result = candidate.loss_empty, candidate.loss_call, candidate.loss_result
    if empty is None or call is None or result is None:
        return None
    return min(empty, call) - result


def looks_ahead(text: str, candidate: Candidate) -> bool:
    """Whether the input is in ``text`` and no place of it ends before the call."""
    wanted = candidate.input.strip()
    return bool(wanted) and wanted in text and wanted not in text[: candidate.offset]


def _fates(one: Annotated) -> Iterator[Fate]:
    for call in one.candidates:
        gained = "" if call.gain is None else f"{call.gain:+.3f} nats: "
        reason = None if call.verdict == KEPT else call.verdict or "not judged"
        yield Fate(reason, gained + in_text(one, call), call.gain or 0.0)


KEEPING: Final = Keeping(
    "calls",
    _fates,
    {
        BELOW: "--tau below the best gain above; if that is near 0, another base model (`toolformer jobs copying` "
        "tests whether it repeats what it reads), or longer results",
        LOOKS_AHEAD: "input_from_before = false in the tool's table, if its calls need not repeat what is before them",
        "": "one of these calls yourself (`toolformer call TOOL INPUT`), then execute and filter again",
    },
)
"""What the filter and the merge keep."""


def _judged(candidate: Candidate, text: str, thresholds: Thresholds) -> Candidate:
    # Rounded as it is written to a file, so that a verdict is the same from memory and from there.
    judged = dataclasses.replace(candidate, gain=gain(candidate))
    return dataclasses.replace(judged, verdict=_verdict(judged, text, thresholds))


def _verdict(candidate: Candidate, text: str, thresholds: Thresholds) -> str:
    if candidate.output is None:
        return NOT_EXECUTED if candidate.error is None else NO_RESULT.format(code=candidate.error)
    if candidate.gain is None:
        return candidate.verdict or NOT_SCORED
    if thresholds.input_from_before and looks_ahead(text, candidate):
        return LOOKS_AHEAD
    return KEPT if candidate.gain >= thresholds.gain else BELOW
