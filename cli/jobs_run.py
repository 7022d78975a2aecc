"""``toolformer jobs run``: the whole pipeline of the jobs, where wanted with the tool services started for it; or, with
a stage's name before all else, that stage: here, in a container or on a cluster (``cli/stage_run``)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cli.console import CommandError
from cli.stack import services_up
from cli.stage_run.command import main as run_stage
from cli.stage_run.programs import STAGES
from toolformer.names import did_you_mean
from training_jobs.pipeline import main as run_stages
from training_jobs.pipeline import make_parser

_UP: Final = "--up"


def main(arguments: Sequence[str]) -> int:
    """Run all stages with ``arguments``, which are those of ``training_jobs.pipeline``; or one, see `cli.stage_run`.

    Raises:
        CommandError: if the services do not start, or the one stage cannot be.
        SystemExit: the stages' own.
    """
    if (arguments and arguments[0] in STAGES) or any(word.split("=")[0] == "--on" for word in arguments):
        return run_stage(arguments)
    first = arguments[0] if arguments else ""
    if not first.startswith("-") and not Path(first).exists() and (hint := did_you_mean(first, STAGES)):
        raise CommandError(f"there is no stage and no file {first!r}; {hint}the stages: {', '.join(STAGES)}")
    options = make_parser().parse_args(arguments)
    with contextlib.ExitStack() as stack:
        if options.up:
            os.environ.update(stack.enter_context(services_up(options.tools, os.environ)))
        run_stages([argument for argument in arguments if argument != _UP])
    return 0
