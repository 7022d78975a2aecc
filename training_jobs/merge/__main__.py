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
from training_jobs.merge.choosing import EXAMPLES_PER_TOOL, MergeRule
from training_jobs.stages.command import positive, run_command, run_folder, stage_parser
from training_jobs.stages.merging import merge_tools

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
    add_rule(parser)
    parser.add_argument("--seed", type=int, default=0, help="draws the examples of a tool that has too many")
    run_command(parser, _run, arguments)


def add_rule(parser: argparse.ArgumentParser) -> None:
    """Options of the rule."""
    parser.add_argument(
        "--examples-per-tool",
        type=positive,
        default=EXAMPLES_PER_TOOL,
        help=f"texts with calls of a tool, at most ({EXAMPLES_PER_TOOL:,})",
    )
    parser.add_argument(
        "--calls-per-position", type=positive, default=2, help="calls of different tools at a position, at most (2)"
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="a call never stands where its own gain is below tau_f, as in the paper; otherwise a call that was kept "
        "elsewhere in the text stands where the text goes on with its whole result",
    )


def merge_rule(options: argparse.Namespace) -> MergeRule:
    """What `add_rule`'s options say."""
    return MergeRule(options.examples_per_tool, options.calls_per_position, options.seed, options.strict)


def _run(options: argparse.Namespace) -> None:
    folder, registry = run_folder(options), ToolRegistry.load()
    tools = folder.tools("filter", registry, options.tools)
    merge_tools(folder, tools, merge_rule(options), registry, Console(stderr=True))


if __name__ == "__main__":
    main()
