"""``toolformer jobs run``: the whole pipeline of the jobs, where wanted with the tool services started for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Final

from cli.stack import services_up
from training_jobs.stages.__main__ import main as run_stages
from training_jobs.stages.__main__ import make_parser

_UP: Final = "--up"


def main(arguments: Sequence[str]) -> None:
    """Run all stages with ``arguments``, which are those of ``training_jobs.stages``.

    Raises:
        CommandError: if the services do not start.
        SystemExit: the stages' own.
    """
    options = make_parser().parse_args(arguments)
    with contextlib.ExitStack() as stack:
        if options.up:
            os.environ.update(stack.enter_context(services_up(options.tools, os.environ)))
        run_stages([argument for argument in arguments if argument != _UP])
