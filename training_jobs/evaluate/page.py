"""The page on which a person looks at results: bars with intervals, scaling, tables, examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from training_jobs.evaluate import paper
from training_jobs.evaluate.answers import Answer, Call
from training_jobs.evaluate.conditions import Condition
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.run import Answers
from training_jobs.evaluate.suites import SUITES
from training_jobs.evaluate.tables import tables
from training_jobs.pages import write_page as write_filled

_PAGE: Final = Path(__file__).with_name("page.html")
_EXAMPLES: Final = 40
"""Examples of a suite under a condition, half of them right where there are enough of both."""

AVERAGED: Final[Mapping[str, tuple[str, ...]]] = {
    "LAMA": ("squad", "google-re", "t-rex"),
    "Word problems": ("asdiv", "svamp", "mawps"),
    "Open questions": ("webqs", "nq", "triviaqa"),
    "Own: facts": ("own-facts",),
    "Own: word problems": ("own-word-problems",),
    "Own: questions": ("own-questions",),
    "Own: dates": ("own-dates",),
    "Own: two calls": ("own-two-calls",),
}
"""What the scaling plot averages; the first three are the paper's figure 4."""


def write_page(path: Path, outcomes: Sequence[Outcome], answers: Answers | None = None, *, note: str = "") -> None:
    """Write the page of ``outcomes`` to ``path``; ``answers``, of the last of them, are where examples
    are taken from; ``note`` stands on top."""
    data = {
        "about": ({"note": note} if note else {}) | {outcome.label: _about(outcome) for outcome in outcomes},
        "bars": list(_bars(outcomes)),
        "scaling": list(scaling(outcomes)),
        "tables": [asdict(table) for table in tables(outcomes)],
        "examples": list(_examples(outcomes[-1], answers or {})),
    }
    write_filled(path, _PAGE, data)


def scaling(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    """Lines of average right answers over the number of parameters, for models of at least two sizes."""
    sized = sorted((one for one in outcomes if one.parameters), key=lambda one: one.parameters)
    if len({outcome.parameters for outcome in sized}) < 2:
        return
    asked = dict.fromkeys(condition for outcome in sized for condition in outcome.conditions)
    for title, suites in AVERAGED.items():
        lines = []
        for condition in sorted(asked):
            points = [
                {"parameters": outcome.parameters, "share": share}
                for outcome in sized
                if (share := _average(outcome, suites, condition)) is not None
            ]
            if len(points) > 1:
                lines.append(
                    {"name": f"calls {condition.name}" if condition.disabled else condition.name, "points": points}
                )
        if lines:
            yield {"title": title, "lines": lines}


def _average(outcome: Outcome, suites: Iterable[str], condition: Condition) -> float | None:
    found = [outcome.score(suite, condition) for suite in suites]
    return fmean(one.all.value for one in found if one) if all(found) else None


def _about(outcome: Outcome) -> str:
    told = [f"{name} {value}" for name, value in outcome.settings.items() if isinstance(value, str | int)]
    parameters = [f"{outcome.parameters:,} parameters"] if outcome.parameters else []
    left_out = [
        f"{SUITES[suite].title}: {number:,} left out ({reason})"
        for suite, reasons in outcome.left_out.items()
        for reason, number in reasons.items()
        if number and suite in SUITES
    ]
    return "; ".join([*parameters, *told, *left_out])


def _bars(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    for table in dict.fromkeys(suite.table for suite in SUITES.values()):
        rows: dict[str, None] = {}
        suites = []
        for suite in SUITES.values():
            values = []
            for outcome in outcomes if suite.table == table else ():
                for condition in outcome.conditions:
                    if found := outcome.score(suite.name, condition):
                        low, high = found.all.interval
                        name = outcome.row(condition)
                        rows[name] = None
                        values.append(
                            {"row": name, "share": found.all.value, "low": low, "high": high, "n": found.all.n}
                        )
            if values:
                known = paper.figure(suite.name, "Toolformer")
                suites.append({"title": suite.title, "n": values[0]["n"], "paper": known, "values": values})
        if suites:
            yield {"title": table, "rows": list(rows), "suites": suites}


def _examples(outcome: Outcome, answers: Answers) -> Iterator[dict[str, Any]]:
    for (condition, suite), some in answers.items():
        wrong = [answer for answer in some if not answer.right]
        right = [answer for answer in some if answer.right]
        half = _EXAMPLES // 2
        shown = wrong[: max(half, _EXAMPLES - len(right))] + right[: max(half, _EXAMPLES - len(wrong))]
        for answer in shown:
            yield {
                "suite": SUITES[suite].title,
                "row": outcome.row(condition),
                "split": answer.split,
                "id": answer.id,
                "date": answer.date or "",
                "prompt": answer.prompt,
                "text": answer.text,
                "calls": [_call(call) for call in answer.calls],
                "answers": list(answer.answers),
                "outcome": _outcome(answer),
                "trouble": answer.error or answer.refused or "",
            }


def _outcome(answer: Answer) -> str:
    return "failed" if answer.error else "refused" if answer.refused else "right" if answer.right else "wrong"


def _call(call: Call) -> str:
    return f"{call.tool}({call.input}) -> {call.output if call.executed else call.error}"
