"""The stage ``merge``: C*, the baseline C, the table and the page.

    python -m training_jobs.merge --run RUN

Reads ``RUN/filter/<Tool>.jsonl``, writes ``RUN/merge/``: ``with_calls.jsonl``, ``without_calls.jsonl``,
``documents.jsonl``, ``summary.json`` and ``report.html``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console

from toolformer.tools import ToolRegistry
from training_jobs.merge.choosing import MergeRule
from training_jobs.merge.job import merge_tools
from training_jobs.options import run_command, run_folder, stage_parser
from training_jobs.settings import add_settings, read_settings

_EXAMPLES = """
toolformer jobs merge --run RUN
toolformer jobs merge --run RUN --strict
toolformer jobs merge --run RUN --examples-per-tool 5000 --calls-per-position 1
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line of this stage."""
    parser = stage_parser(
        "training_jobs.merge",
        "Put the kept calls of all tools into their texts, print counts at several thresholds and the calls that gain "
        "most, and write a page to look at them.",
        _EXAMPLES,
    )
    add_settings(parser, MergeRule)
    run_command(parser, _run, arguments)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    tools = folder.tools("filter", registry, options.tools)
    merge_tools(folder, tools, read_settings(MergeRule, options), registry, Console(stderr=True))


if __name__ == "__main__":
    main()
