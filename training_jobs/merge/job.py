"""The stage ``merge``: from filtered files to C*, its table and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from toolformer.tools import Tool, ToolRegistry
from training_jobs.errors import StageError
from training_jobs.filter.judging import KEEPING
from training_jobs.merge.choosing import MergeRule
from training_jobs.merge.examples import CallInText, examples
from training_jobs.merge.kept import records
from training_jobs.merge.rounds import earlier_texts
from training_jobs.merge.table import ToolCounts, printed, rows
from training_jobs.merge.writing import merge, read_summary
from training_jobs.nothing_kept import check_kept, printable
from training_jobs.pages import write_page
from training_jobs.run_folder import RunFolder
from training_jobs.runner.progress import StageProgress

REPORT = "report.html"
_SHOWN = 3
"""Examples of each tool that are printed."""


def merge_tools(
    folder: RunFolder, tools: Sequence[Tool], rule: MergeRule, registry: ToolRegistry, console: Console
) -> None:
    """Merge what the filter kept of ``tools`` into ``folder.merged``, with its page, and print table and examples.

    Killed, it leaves the files as they were; it is made again each time, from what takes long to make.

    Raises:
        NothingKept: if C* has no call.
        StageError: if a file is not what it should be.
    """
    files = {tool.name: folder.file("filter", tool.name) for tool in tools}
    lines = sum(_lines(path) for path in files.values())
    with StageProgress("merge", lines, 0, console) as progress:
        counts = merge(
            files, folder.merged, rule, registry, earlier=earlier_texts(folder), saw=lambda: progress.advance(1, {})
        )
    _report(folder, files, counts, registry, console, folder.merged / REPORT)
    if not any(one.merged_calls for one in counts.values()):
        check_kept({f"merge {tool}": path for tool, path in files.items()}, KEEPING, console)


def report_tools(
    folder: RunFolder, tools: Sequence[Tool], registry: ToolRegistry, console: Console, *, out: Path | None = None
) -> None:
    """Print table and examples of what the filter kept of ``tools``, and write the page to ``out``; C* stays as it is.

    Raises:
        StageError: if a file is not what it should be.
    """
    files = {tool.name: folder.file("filter", tool.name) for tool in tools}
    counts = {tool: ToolCounts() for tool in files}
    for tool, path in files.items():
        for _, record in records(path):
            counts[tool].see(record)
    merged = read_summary(folder.merged)
    for tool, one in counts.items():
        one.merged_texts, one.merged_calls = merged.get(tool, (0, 0))
    _report(folder, files, counts, registry, console, out or folder.merged / REPORT)


def _report(
    folder: RunFolder,
    files: Mapping[str, Path],
    counts: dict[str, ToolCounts],
    registry: ToolRegistry,
    console: Console,
    out: Path,
) -> None:
    shown = examples(files, registry)
    calls = sum(one.merged_calls for one in counts.values())
    write_report(out, counts, shown, {"run": folder.path.resolve().name, "calls in C*": f"{calls:,}"})
    _show(counts, shown, Console())
    console.print(f"page: {out}", markup=False, highlight=False, soft_wrap=True)


def _show(counts: dict[str, ToolCounts], shown: Sequence[CallInText], console: Console) -> None:
    """Print the table and some examples of each tool."""
    console.print(printed(counts))
    for tool in counts:
        for example in [one for one in shown if one.tool == tool][:_SHOWN]:
            line = Text.assemble(
                (f"{example.gain:+.3f} ", "bold"),
                printable(example.before[-80:]),
                (printable(f" [{example.call} -> {example.result}]"), "cyan"),
                printable(example.after[:60]),
            )
            console.print(line, soft_wrap=True)


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); run the filter first") from error


_PAGE: Final = Path(__file__).with_name("report.html")


def write_report(
    path: Path, counts: dict[str, ToolCounts], examples: Sequence[CallInText], about: Mapping[str, Any]
) -> None:
    """Write the page to ``path``; ``about`` are facts to stand on top, by name."""
    heading, body = rows(counts)
    data = {
        "about": {name: str(value) for name, value in about.items()},
        "heading": heading,
        "rows": body,
        "verdicts": {tool: dict(one.verdicts.most_common()) for tool, one in counts.items()},
        "examples": [asdict(example) for example in examples],
    }
    write_page(path, _PAGE, data)
