"""``toolformer jobs run``: the whole pipeline of the jobs, where wanted with the tool services started for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from cli.components import SERVICES, load_registry, service_components
from cli.console import CommandError
from training_jobs.stages.__main__ import main as run_stages
from training_jobs.stages.__main__ import make_parser

_UP: Final = "--up"
_STOP_SECONDS: Final = 40.0
"""How long the services may take to stop; `toolformer up` itself gives them less."""


def main(arguments: Sequence[str]) -> None:
    """Run all stages with ``arguments``, which are those of ``training_jobs.stages``.

    Raises:
        CommandError: if the services do not start.
        SystemExit: the stages' own.
    """
    options = make_parser().parse_args(arguments)
    with _services(options.tools) if options.up else contextlib.nullcontext():
        run_stages([argument for argument in arguments if argument != _UP])


@contextlib.contextmanager
def _services(tools: Sequence[str] | None) -> Iterator[None]:
    """The services of ``tools`` (by default all that nobody moved elsewhere) as processes that end with this one,
    however it ends; they and the stages are told the same addresses."""
    names = {service: tool for tool, service in SERVICES.items()}
    services = service_components(load_registry(os.environ), tools, os.environ)
    for service in services:
        os.environ[f"TOOLFORMER_{service.name.upper()}_PORT"] = str(service.port)
        os.environ[f"TOOLFORMER_TOOL_{names[service.name].upper()}_URL"] = service.url
    chosen = ",".join(service.name for service in services)  # by name: `up` leaves out what was moved, as these were
    command = [sys.executable, "-m", "cli.tethered", "cli", "up", "--no-gateway", "--tools", chosen]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            # `up` has a deadline of its own, and ends where it passes.
            if not any(line.startswith("ready: ") for line in process.stdout):
                raise CommandError("the tool services did not start; their log above says why")
            yield
        finally:
            process.stdin.close()  # the sign to stop
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
