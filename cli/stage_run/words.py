"""What the command says itself: on standard error, since the stage's own log is what stands on standard output."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cli.console import CommandError, printable

PACKAGES = "pip install -r requirements/cli-remote.txt"


def say(message: str) -> None:
    """One line of our own."""
    print(f"toolformer: {printable(message)}", file=sys.stderr, flush=True)


def package(name: str, place: str) -> Any:
    """The optional package ``name``, which ``--on place`` stands on.

    Raises:
        CommandError: it is not installed.
    """
    try:
        found = importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise CommandError(f"--on {place} needs the package {error.name}: {PACKAGES}") from error
    if found.__file__ is None:  # a folder of that name, as docker/ beside this one is
        raise CommandError(f"--on {place} needs the package {name}: {PACKAGES}")
    return found


def output_of(command: Sequence[str], remedy: str, seconds: float = 120, folder: Path | None = None) -> str:
    """What a program prints.

    Raises:
        CommandError: it is not there, fails, or takes longer than ``seconds``; with its own first words and ``remedy``.
    """
    named = " ".join(command[:2])
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=folder)
    except FileNotFoundError as error:
        raise CommandError(f"{command[0]} is not installed: {remedy}") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{named} gave no answer within {seconds:g} s: {remedy}") from error
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise CommandError(f"{named} failed: {words[0]}: {remedy}")
    return done.stdout
