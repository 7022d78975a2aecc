"""Calling docker and kubectl, and the command's own messages beside the stage's log."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from cli.checkout import CHECKOUT
from cli.console import CommandError, printable

STAGES: Final = {
    "corpus": "training_jobs.corpora.web",
    "annotate": "training_jobs.annotate",
    "execute": "training_jobs.execute",
    "filter": "training_jobs.filter",
    "merge": "training_jobs.merge",
    "finetune": "training_jobs.finetune",
    "evaluate": "training_jobs.evaluate",
}
"""The module of each stage."""
_SECONDS: Final = 120.0
_REMEDIES: Final = {"docker": "install Docker with its compose plugin", "kubectl": "install kubectl"}


def say(message: str) -> None:
    """Print one line of our own on standard error: standard output is the stage's log."""
    print(f"toolformer: {printable(message)}", file=sys.stderr, flush=True)


def start(
    command: Sequence[str], stdin: int = subprocess.DEVNULL, stdout: int | None = None, stderr: int | None = None
) -> subprocess.Popen[str]:
    """Start a program that Ctrl-C in the terminal does not reach; it writes where we write, or where it is said.

    Raises:
        CommandError: it is not installed.
    """
    try:
        return subprocess.Popen(
            command, stdin=stdin, stdout=stdout, stderr=stderr, text=True, start_new_session=True, cwd=CHECKOUT
        )
    except FileNotFoundError as error:
        raise CommandError(f"{command[0]} is not installed: {_REMEDIES[command[0]]}") from error


def output_of(*command: str, given: str = "") -> str:
    """What a program prints, with ``given`` as its standard input.

    Raises:
        CommandError: it is not installed, fails, or takes longer than 120 s; with its own words.
    """
    named, pipe = " ".join(command[:2]), subprocess.PIPE
    with start(command, pipe, pipe, pipe) as running:
        try:
            printed, errors = running.communicate(given, _SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CommandError(f"{named} gave no answer within {_SECONDS:g} s") from error
        finally:
            running.kill()  # it has ended, unless its time or ours is over
            running.wait()
    if running.returncode:
        raise CommandError(f"{named} failed: {errors.strip() or f'exit status {running.returncode}'}")
    return printed
