"""Verdicts from losses alone: another threshold needs no model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Self

from toolformer.tools import Tool
from training_jobs.filter.given_numbers import given_numbers, numbers
from training_jobs.nothing_kept import Fate, Keeping, in_text
from training_jobs.records import BELOW, KEPT, Annotated, Candidate

LOOKS_AHEAD: Final = "looks ahead"
"""The input is in the text, but not before the call: whoever writes the call there cannot know it."""
NOT_GIVEN: Final = "input not given"
"""What the call asks with is not in the text before it, and that was required."""
NO_RESULT: Final = "no result: {code}"
NOT_EXECUTED: Final = "not executed"
NOT_SCORED: Final = "not scored"
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a call must do to be kept: lower the loss by ``gain`` nats (``tau_f``) and, where ``input_from_before``, not
    take its input from behind itself. ``given_inputs`` goes further than the paper, for every tool: see `is_given`."""

    gain: float
    input_from_before: bool = False
    given_inputs: bool = False

    @classmethod
    def of(cls, tool: Tool, *, tau: float | None = None, cost_weight: float = 0.0, given_inputs: bool = False) -> Self:
        """The thresholds of ``tool``: ``tau`` (by default the registry's ``tau_f``) and ``cost_weight`` nats for each
        unit of what a call of it costs."""
        threshold = tool.filter_threshold if tau is None else tau
        return cls(threshold + cost_weight * tool.cost, tool.input_from_before, given_inputs)


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


def is_given(text: str, candidate: Candidate, *, whole: bool) -> bool:
    """Whether the text before the call has what the call asks with: its input as a ``whole``; or each number in it, in
    digits or as words stand for it (`given_numbers`), and each name, a capital word that is not its first.

    While it annotates, the model has read the text to its end, so a call may be made of numbers and names that come
    later, or of none that come at all, and still help: its result begins like the number that follows."""
    before = text[: candidate.offset]
    if whole:
        return candidate.input.strip() in before
    names = {word.lower() for word in _WORD.findall(candidate.input)[1:] if word[0].isupper()}
    return set(numbers(candidate.input)) <= given_numbers(before) and names <= set(_WORD.findall(before.lower()))


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
        NOT_GIVEN: "without --given-inputs",
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
    if thresholds.given_inputs and not is_given(text, candidate, whole=thresholds.input_from_before):
        return NOT_GIVEN
    return KEPT if candidate.gain >= thresholds.gain else BELOW
