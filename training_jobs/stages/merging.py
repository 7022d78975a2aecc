"""The stage ``merge``: from filtered files to C*, its table and its page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from toolformer.tools import Tool, ToolRegistry
from training_jobs.merge.choosing import MergeRule
from training_jobs.merge.examples import Example, examples
from training_jobs.merge.report import write_report
from training_jobs.merge.table import ToolCounts, printed
from training_jobs.merge.writing import WITH_CALLS, merge
from training_jobs.stages.errors import StageError
from training_jobs.stages.folder import RunFolder
from training_jobs.stages.progress import StageProgress
from training_jobs.stages.rounds import earlier_texts

REPORT = "report.html"
_SHOWN = 3
"""Examples of each tool that are printed."""


def merge_tools(
    folder: RunFolder, tools: Sequence[Tool], rule: MergeRule, registry: ToolRegistry, console: Console
) -> None:
    """Merge what the filter kept of ``tools`` into ``folder.merged``, with its page, and print table and examples.

    Killed, it leaves the files as they were; it is made anew each time, from what takes long to make.

    Raises:
        StageError: if a file is not what it should be.
    """
    files = {tool.name: folder.file("filter", tool.name) for tool in tools}
    lines = sum(_lines(path) for path in files.values())
    with StageProgress("merge", lines, 0, console) as progress:
        counts = merge(
            files, folder.merged, rule, registry, earlier=earlier_texts(folder), saw=lambda: progress.advance(1, {})
        )
    shown = examples(files, registry)
    about = {
        "run": folder.path.resolve().name,
        "texts in C*": f"{_lines(folder.merged / WITH_CALLS):,}",
        "examples a tool": f"{rule.examples_per_tool:,} at most",
        "calls at a position": f"{rule.calls_per_position} at most, of different tools",
    }
    write_report(folder.merged / REPORT, counts, shown, about)
    _show(counts, shown, Console())
    console.print(f"merge: {folder.merged / REPORT}", markup=False, highlight=False, soft_wrap=True)


def _show(counts: dict[str, ToolCounts], shown: Sequence[Example], console: Console) -> None:
    """Print the table and some examples of each tool."""
    console.print(printed(counts))
    for tool in counts:
        for example in [one for one in shown if one.tool == tool][:_SHOWN]:
            line = Text.assemble(
                (f"{example.gain:+.3f} ", "bold"),
                example.before[-80:].replace("\n", " "),
                (f" [{example.call} -> {example.result}]", "cyan"),
                example.after[:60].replace("\n", " "),
            )
            console.print(line, soft_wrap=True)


def _lines(path: Path) -> int:
    try:
        with path.open("rb") as file:
            return sum(1 for _ in file)
    except OSError as error:
        raise StageError(f"{path}: cannot be read ({error.strerror}); run the filter first") from error
