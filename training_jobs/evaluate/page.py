"""The page on which a person looks at results: bars with intervals, scaling, tables, examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from training_jobs.evaluate import paper
from training_jobs.evaluate.answers import Answer, Call
from training_jobs.evaluate.asking_suites import Answers
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.scaling import scaling
from training_jobs.evaluate.suites import SUITES
from training_jobs.evaluate.tables import tables
from training_jobs.pages import write_page as write_filled

_PAGE: Final = Path(__file__).with_name("page.html")
_EXAMPLES: Final = 40
"""Examples of a suite under a condition, half of them right where there are enough of both."""


def write_page(path: Path, outcomes: Sequence[Outcome], answers: Answers | None = None, *, note: str = "") -> None:
    """Write the page of ``outcomes`` to ``path``; ``answers``, of the last of them, are where examples
    are taken from; ``note`` is on top."""
    data = {
        "about": ({"note": note} if note else {}) | {outcome.label: _about(outcome) for outcome in outcomes},
        "bars": list(_bars(outcomes)),
        "scaling": [asdict(panel) for panel in scaling(outcomes)],
        "tables": [asdict(table) for table in tables(outcomes)],
        "examples": list(_examples(outcomes[-1], answers or {})),
    }
    write_filled(path, _PAGE, data)


def _about(outcome: Outcome) -> str:
    settings = [f"{name} {value}" for name, value in outcome.settings.items() if isinstance(value, str | int)]
    parameters = [f"{outcome.parameters:,} parameters"] if outcome.parameters else []
    left_out = [
        f"{SUITES[suite].title}: {number:,} left out ({reason})"
        for suite, reasons in outcome.left_out.items()
        for reason, number in reasons.items()
        if number and suite in SUITES
    ]
    return "; ".join([*parameters, *settings, *left_out])


def _bars(outcomes: Sequence[Outcome]) -> Iterator[dict[str, Any]]:
    asked = {score.suite: score for outcome in outcomes for score in outcome.scores}
    ordered = [asked[name] for name in (*SUITES, *asked) if name in asked]
    for table in dict.fromkeys(score.table for score in ordered):
        rows: dict[str, None] = {}
        suites = []
        for suite in dict.fromkeys(score.suite for score in ordered if score.table == table):
            values = []
            for outcome in outcomes:
                for condition in outcome.conditions:
                    if found := outcome.score(suite, condition):
                        low, high = found.all.interval
                        name = outcome.row(condition)
                        rows[name] = None
                        values.append(
                            {"row": name, "share": found.all.value, "low": low, "high": high, "n": found.all.n}
                        )
            if values:
                known = paper.figure(suite, "Toolformer")
                suites.append({"title": asked[suite].title, "n": values[0]["n"], "paper": known, "values": values})
        if suites:
            yield {"title": table, "rows": list(rows), "suites": suites}


def _examples(outcome: Outcome, answers: Answers) -> Iterator[dict[str, Any]]:
    titles = {score.suite: score.title for score in outcome.scores}
    for (condition, suite), some in answers.items():
        wrong = [answer for answer in some if not answer.right]
        right = [answer for answer in some if answer.right]
        half = _EXAMPLES // 2
        shown = wrong[: max(half, _EXAMPLES - len(right))] + right[: max(half, _EXAMPLES - len(wrong))]
        for answer in shown:
            yield {
                "suite": titles[suite],
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
