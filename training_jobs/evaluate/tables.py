"""The paper's tables, with this run's rows beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from training_jobs.evaluate import paper
from training_jobs.evaluate.outcome import Outcome
from training_jobs.evaluate.scores import Score
from training_jobs.evaluate.suites import FILE_TABLE, SUITES, TEXTS

_TITLES: Final = {
    "LAMA": "LAMA (table 3)",
    "math": "Word problems (table 4)",
    "QA": "Open questions (table 5)",
    "MLQA": "MLQA (table 6)",
    "MLQA, all English": "MLQA, paragraph and question in English (table 6)",
    "temporal": "Temporal (table 7)",
    "own": "The project's own suites",
    "tools": "Prompts that ask for a tool",
}
_PARTS_OF: Final = ("own", "tools", "temporal")
"""Tables whose suites are shown part by part as well."""
_NONE: Final = "-"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text: its title, the heading's cells, the rows, and a line below it."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(outcomes: Sequence[Outcome]) -> Iterator[Table]:
    """Every table that ``outcomes`` have something for."""
    for name, title in _TITLES.items():
        suites = [suite.name for suite in SUITES.values() if suite.table == name and _scores(outcomes, suite.name)]
        if suites:
            yield _accuracy(title, suites, outcomes)
    if any(score.splits and score.table in _PARTS_OF for outcome in outcomes for score in outcome.scores):
        yield _parts(outcomes)
    for suite, title in _asked(outcomes):
        if any(score.table == FILE_TABLE for score in _scores(outcomes, suite)):
            yield _kinds(suite, title, outcomes)
    if any(outcome.perplexity for outcome in outcomes):
        yield _perplexity(outcomes)
    if any(not score.condition.disabled for outcome in outcomes for score in outcome.scores):
        yield _calls(outcomes)
    if any(len({score.condition.k for score in outcome.scores}) > 2 for outcome in outcomes):
        yield _decoding(outcomes)


def _scores(outcomes: Sequence[Outcome], suite: str) -> list[Score]:
    return [score for outcome in outcomes for score in outcome.scores if score.suite == suite]


def _asked(outcomes: Sequence[Outcome]) -> list[tuple[str, str]]:
    """Name and title of each suite that was asked: those known here in their order, then files."""
    titles = {score.suite: score.title for outcome in outcomes for score in outcome.scores}
    order = [name for name in SUITES if name in titles] + [name for name in titles if name not in SUITES]
    return [(name, titles[name]) for name in order]


def _papers(names: Sequence[str]) -> list[tuple[str, ...]]:
    """The paper's rows of these columns; models without a figure are left out."""
    return [
        (f"{model} [paper]", *(_figure(paper.figure(name, model)) for name in names))
        for model in paper.models()
        if any(paper.figure(name, model) is not None for name in names)
    ]


def _accuracy(title: str, suites: Sequence[str], outcomes: Sequence[Outcome]) -> Table:
    heading = ["right, %"]
    for name in suites:
        sizes = sorted({score.all.n for score in _scores(outcomes, name)})
        heading.append(f"{SUITES[name].title}\nn = {' / '.join(map(str, sizes))}")
    rows = _papers(suites)
    for outcome in outcomes:
        for condition in outcome.conditions:
            found = [outcome.score(name, condition) for name in suites]
            if any(found):
                rows.append((outcome.row(condition), *(one.all.shown if one else _NONE for one in found)))
    return Table(title, tuple(heading), tuple(rows), "In parentheses: 95 % intervals (Wilson).")


def _parts(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for name, title in _asked(outcomes):
        found = [
            (outcome, score)
            for outcome in outcomes
            for score in outcome.scores
            if score.suite == name and score.table in _PARTS_OF
        ]
        for part in dict.fromkeys(part for _, score in found for part in score.splits):
            for outcome, score in found:
                if part in score.splits:
                    share = score.splits[part]
                    rows.append((title, part, outcome.row(score.condition), share.shown, str(share.n)))
    return Table("Parts of suites", ("suite", "part", "", "right, %", "n"), tuple(rows))


def _kinds(suite: str, title: str, outcomes: Sequence[Outcome]) -> Table:
    rows = []
    scored = [(outcome, score) for outcome in outcomes for score in outcome.scores if score.suite == suite]
    for kind in dict.fromkeys(kind for _, score in scored for kind in (score.splits or {"all": score.all})):
        for outcome, score in scored:
            share = score.splits.get(kind, score.all)
            conduct = score.conduct.get(kind)
            conducts = (conduct.expected.shown, str(conduct.empty), str(conduct.cut_off)) if conduct else (_NONE,) * 3
            rows.append((kind, outcome.row(score.condition), share.shown, *conducts, str(share.n)))
    heading = ("kind", "", "right, %", "called as expected, %", "empty", "cut off", "n")
    note = "In parentheses: 95 % intervals (Wilson). Cut off: the tokens ran out before the text ended."
    return Table(f"Prompts of {title}", heading, tuple(rows), note)


def _perplexity(outcomes: Sequence[Outcome]) -> Table:
    names = [name for name in TEXTS if any(name in outcome.perplexity for outcome in outcomes)]
    heading = ["perplexity (bits per byte)"]
    for name in names:
        counts = sorted({outcome.perplexity[name].texts for outcome in outcomes if name in outcome.perplexity})
        heading.append(f"{TEXTS[name][0]}\n{' / '.join(map(str, counts))} texts")
    rows = _papers(names)
    for outcome in outcomes:
        if outcome.perplexity:
            cells = []
            for name in names:
                loss = outcome.perplexity.get(name)
                cells.append(f"{loss.perplexity:.2f} ({loss.bits_per_byte:.3f})" if loss else _NONE)
            rows.append((outcome.label, *cells))
    note = "Perplexities of models with different vocabularies cannot be compared; bits per byte can."
    return Table("Language modelling (table 8)", tuple(heading), tuple(rows), note)


def _calls(outcomes: Sequence[Outcome]) -> Table:
    tools = list(dict.fromkeys(tool for outcome in outcomes for score in outcome.scores for tool in score.called))
    rows = []
    for name, title in _asked(outcomes):
        for outcome in outcomes:
            for score in outcome.scores:
                if score.suite == name and not score.condition.disabled:
                    shares = (f"{100 * score.called.get(tool, 0) / max(1, score.all.n):.1f}" for tool in tools)
                    made = f"{100 * score.with_calls.n / max(1, score.all.n):.1f}"
                    trouble = (str(score.failed), str(score.refused))
                    rows.append((title, outcome.row(score.condition), made, *shares, *trouble))
    heading = ("suite", "", "any call, %", *tools, "failed", "refused")
    note = (
        "Examples for which a tool answered, in percent of all. Failed: no answer in spite of retries; run again. "
        "Refused: the model cannot take the prompt, most often for its length. Both count as wrong."
    )
    return Table("Examples with calls", heading, tuple(rows), note)


def _decoding(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for name, title in _asked(outcomes):
        for outcome in outcomes:
            for score in sorted((one for one in outcome.scores if one.suite == name), key=lambda one: one.condition):
                known = paper.decoding(name, score.condition.k)
                published = [
                    str(known.get(name, _NONE)) if known else _NONE for name in ("all", "with", "without", "calls")
                ]
                share = f"{100 * score.with_calls.n / max(1, score.all.n):.1f}"
                rows.append((
                    title, outcome.label, str(score.condition.k), str(score.condition.max_calls), score.all.shown,
                    score.with_calls.shown, score.without_calls.shown, share, *published,
                ))  # fmt: skip
    ours = ("all", "with calls", "without", "calls, %")
    heading = ("suite", "", "k", "max calls", *ours, *(f"paper: {name}" for name in ours))
    return Table("How freely calls may start (table 9)", heading, tuple(rows))


def _figure(value: float | None) -> str:
    return _NONE if value is None else f"{value:.1f}"
