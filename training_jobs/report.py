"""What a run kept: its table, examples and page again, and how many calls are right where that is known.

python -m training_jobs.report --run RUN
python -m training_jobs.report --run RUN --truth WEB/truth.jsonl
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from toolformer.tools import ToolRegistry
from training_jobs.errors import StageError
from training_jobs.merge.job import report_tools
from training_jobs.merge.precision import measure, printed
from training_jobs.merge.writing import read_rule
from training_jobs.options import run_command, run_folder, stage_parser
from training_jobs.runner.parts import write_json

_EXAMPLES = """
toolformer jobs report --run RUN
toolformer jobs report --run RUN --tools QA --truth WEB/truth.jsonl
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = stage_parser(
        "training_jobs.report",
        "Print how many calls were kept at several thresholds and those that gain most, and write the page to look at "
        "them; C* stays as it is.",
        _EXAMPLES,
    )
    parser.add_argument("--out", type=Path, help="the page (RUN/merge/report.html)")
    parser.add_argument("--truth", type=Path, help="truth.jsonl of generated texts: tells how many calls are right")
    parser.add_argument(
        "--reach", type=int, default=0, help="characters that a right call may be before the answer (0)"
    )
    parser.add_argument("--json", type=Path, help="with --truth: write how many calls are right to this file")
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    if options.json is not None and options.truth is None:
        raise StageError("--json has figures of right calls, which only --truth knows: give it too")
    folder, registry = run_folder(options), ToolRegistry.load()
    tools = folder.tools("filter", registry, options.tools)
    console = Console(stderr=True)
    report_tools(folder, tools, registry, console, out=options.out)
    if options.truth is not None:
        files = {tool.name: folder.file("filter", tool.name) for tool in tools}
        found = measure(files, options.truth, reach=options.reach, rule=read_rule(folder.merged))
        Console().print(printed(found))
        if options.json is not None:
            found_by_tool = {tool: one.as_json() for tool, one in found.items()}
            write_json(options.json, found_by_tool)


if __name__ == "__main__":
    main()
