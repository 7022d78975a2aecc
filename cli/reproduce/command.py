"""The whole loop as one command: base model, C and C*, finetuning, evaluation, a second round, tables.

    toolformer reproduce --setting short
    toolformer reproduce --setting full --out RUN
    toolformer reproduce --list

Ended at any moment, the same command goes on: what is done is not done again, and each step goes on where it was.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from cli.components import load_registry
from cli.console import CommandError
from cli.reproduce.marks import MANIFEST, Marks
from cli.reproduce.plan import Step, plan
from cli.reproduce.running import Runner, duration
from cli.reproduce.settings import SETTINGS, SHORT_NOTE, Setting, add_options, chosen
from training_jobs.options import job_parser

_EXAMPLES: Final = """
toolformer reproduce --setting short                       # minutes: does everything run here?
toolformer reproduce                                       # hours: the figures, in var/reproduce/full
toolformer reproduce --base models/base --documents 2000 --out RUN
toolformer reproduce --setting real --real CORPUS --data DATA      # days: real text, the paper's benchmarks
toolformer reproduce --sizes 128x3 256x4 --until table-128x3
toolformer reproduce --list
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Raises:
        CommandError: it cannot be done; the message says why.
    """
    options = make_parser().parse_args(arguments)
    setting = chosen(options.setting, options)
    _require_tools(setting)
    run = (options.out or Path("var") / "reproduce" / options.setting).absolute()
    note = SHORT_NOTE if options.setting == "short" else ""
    steps = plan(setting, run, note)
    names = [step.name for step in steps]
    if options.until is not None and options.until not in names:
        raise CommandError(f"--until: there is no step {options.until!r}; the steps: {', '.join(names)}")
    console = Console(stderr=True)
    if options.list:
        show(steps, run, Console())
        return 0
    if note:
        console.print(note, style="yellow", highlight=False, soft_wrap=True)
    about = {"setting": options.setting, "note": note, "settings": setting.as_json()}
    Runner(run, steps, about, console, os.environ).run(options.until)
    shown = [path for step in steps if step.summary for path in step.products]
    for path in filter(Path.is_file, (*shown, run / MANIFEST)):
        console.print(str(path), markup=False, highlight=False, soft_wrap=True)
    if note:
        console.print(note, style="yellow", highlight=False, soft_wrap=True)
    return 0


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = job_parser(
        "cli.reproduce",
        "The whole loop: base model, C and C*, finetuning, evaluation over HTTP, a second round with chained calls, "
        "tables, manifest. Give the same command again to go on with a run that was ended.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--setting", choices=tuple(SETTINGS), default="full", help="full: hours; short: minutes; real: of --real (full)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the run (var/reproduce/SETTING)")
    parser.add_argument("--list", action="store_true", help="show the steps, which are done, and what each took")
    parser.add_argument("--until", metavar="STEP", help="end after this step; --list has their names")
    add_options(parser)
    return parser


def show(steps: Sequence[Step], run: Path, console: Console) -> None:
    """Print the steps, how far each is, and how long it took."""
    marks = Marks(run)
    table = Table("step", "state", "took", "what", title=f"steps in {run}", title_justify="left", box=None)
    for step in steps:
        state = marks.state(step)
        took = "" if state == "open" else duration(marks.seconds(step))
        table.add_row(step.name, "" if state == "open" else state, took, step.title)
    console.print(table)


def _require_tools(setting: Setting) -> None:
    """An unknown tool name is reported before hours of work, not after."""
    registry = load_registry(os.environ)
    thresholds = {"--tau": setting.tau, "--chained-tau": setting.chained_tau}
    named = {option: [one.partition("=")[0] for one in given if "=" in one] for option, given in thresholds.items()}
    for option, names in {**named, "--chained-tools": setting.chained_tools}.items():
        for name in names:
            if name not in registry:
                known = ", ".join(tool.name for tool in registry)
                raise CommandError(f"{option}: there is no tool {name!r}; the tools: {known}")
