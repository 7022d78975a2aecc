"""Accuracy over model size, the paper's figure 4: what is averaged, and the figure as a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from toolformer.model_files.whole import whole
from training_jobs.evaluate.conditions import Condition
from training_jobs.evaluate.example import SuiteError
from training_jobs.evaluate.outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS: Final = (".svg", ".png", ".pdf")
"""What a figure may be written as."""

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
"""The panels and what each averages; the first three are the paper's."""

_COLUMNS: Final = 2
_UNITS: Final = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))


@dataclass(frozen=True, slots=True)
class Point:
    """The share, 0 to 1, that a model of so many ``parameters`` has right: of one suite with its 95 % interval from
    ``low`` to ``high``; of several their mean, without one."""

    parameters: int
    share: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """Models of several sizes under the same condition, the smallest first."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of the figure."""

    title: str
    lines: tuple[Line, ...]


def scaling(outcomes: Sequence[Outcome]) -> Iterator[Panel]:
    """The panels that can be drawn of ``outcomes``: those with a condition under which models of at least two sizes
    were asked all that the panel averages. Models whose size is unknown are left out."""
    sized = sorted((one for one in outcomes if one.parameters), key=lambda one: one.parameters)
    asked = sorted(dict.fromkeys(condition for outcome in sized for condition in outcome.conditions))
    for title, suites in AVERAGED.items():
        lines = []
        for condition in asked:
            points = tuple(point for one in sized if (point := _point(one, suites, condition)) is not None)
            if len({point.parameters for point in points}) > 1:
                lines.append(Line(f"calls {condition.name}" if condition.disabled else condition.name, points))
        if lines:
            yield Panel(title, tuple(lines))


def _point(outcome: Outcome, suites: Sequence[str], condition: Condition) -> Point | None:
    found = [score.all for suite in suites if (score := outcome.score(suite, condition))]
    if len(found) < len(suites):
        return None
    if len(found) == 1:
        return Point(outcome.parameters, found[0].value, *found[0].interval)
    return Point(outcome.parameters, fmean(one.value for one in found))


def write_figure(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Draw `scaling` of ``outcomes`` to ``path``, the format by its ending; the same outcomes give the same bytes.

    Raises:
        SuiteError: if there is nothing to draw, or the ending is none of `FORMATS`.
    """
    import matplotlib
    from matplotlib.figure import Figure

    if path.suffix.lower() not in FORMATS:
        raise SuiteError(f"--figure {path.name}: name a file that ends with {', '.join(FORMATS)}")
    panels = list(scaling(outcomes))
    if not panels:
        raise SuiteError(
            "--figure: no two models of different known sizes were asked the same suites in the same way; name runs "
            "that were made with --checkpoint from models of several sizes"
        )
    rows = ceil(len(panels) / _COLUMNS)
    # Texts stay texts, and ids do not depend on chance.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "toolformer"}):
        figure = Figure(figsize=(9, 0.4 + 2.9 * rows), layout="constrained")
        grid = figure.subplots(rows, _COLUMNS, squeeze=False).ravel()
        colours = {name: f"C{number}" for number, name in enumerate(_names(panels))}
        for axes, panel in zip(grid, panels, strict=False):
            _draw(axes, panel, colours)
        for axes in grid[len(panels) :]:
            axes.remove()
        drawn = {
            name: line for axes in figure.axes for line, name in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend([drawn[name] for name in colours], list(colours), loc="outside lower center", ncols=len(colours))
        path.parent.mkdir(parents=True, exist_ok=True)
        form = path.suffix.lower()[1:]
        dated = {} if form == "png" else {"CreationDate" if form == "pdf" else "Date": None}
        with whole(path) as partial:
            figure.savefig(partial, metadata=dated, dpi=150, format=form)


def _names(panels: Sequence[Panel]) -> list[str]:
    return list(dict.fromkeys(line.name for panel in panels for line in panel.lines))


def _draw(axes: Axes, panel: Panel, colours: Mapping[str, str]) -> None:
    for line in panel.lines:
        sizes = [point.parameters for point in line.points]
        shares = [100 * point.share for point in line.points]
        below = [100 * (point.share - point.low) if point.low is not None else 0.0 for point in line.points]
        above = [100 * (point.high - point.share) if point.high is not None else 0.0 for point in line.points]
        colour = colours[line.name]
        axes.errorbar(sizes, shares, (below, above), color=colour, marker="o", markersize=4, capsize=3, label=line.name)
    shown = sorted({point.parameters for line in panel.lines for point in line.points})
    axes.set_xscale("log")
    axes.set_xticks(shown, [size_name(size) for size in shown])
    axes.minorticks_off()
    axes.set_ylim(0, 100)
    axes.set(title=panel.title, xlabel="parameters", ylabel="right, %")
    axes.grid(alpha=0.3)


def size_name(parameters: int) -> str:
    """``parameters`` as people say it: 4.2 M, 6.1 B."""
    for unit, letter in _UNITS:
        if parameters >= unit:
            value = parameters / unit
            return f"{value:.0f} {letter}" if value >= 10 else f"{value:.1f} {letter}"
    return str(parameters)
