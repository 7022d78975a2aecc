"""Printing: coloured on a terminal, plain elsewhere, and safe with text that others wrote."""

from __future__ import annotations

import sys
from typing import NoReturn

from rich.console import Console
from rich.text import Text

_CONTROLS = {code: None for code in (*range(0x20), 0x7F, *range(0x80, 0xA0)) if chr(code) not in "\t\n"}


class CommandError(Exception):
    """The command cannot do what it was asked; the message says why and what to do about it. Exit status 1."""


def printable(text: str) -> str:
    """``text`` without control characters, so that what a model or a tool writes cannot steer the terminal."""
    return text.translate(_CONTROLS)


def write(console: Console, text: str, style: str = "") -> None:
    """Write ``text`` as it is, neither wrapped nor read as markup, and at once."""
    console.print(Text(printable(text), style), end="", soft_wrap=True, highlight=False)
    console.file.flush()


def show_finding(console: Console, status: str, style: str, what: str, remedy: str) -> None:
    """One line of what a check found: a ``status`` in its ``style``, what is, and how to mend it, if anything is."""
    line = Text(f"{status}  ", style).append(printable(what), "default")
    if remedy:
        line.append(f"; {printable(remedy)}", "default")
    console.print(line, soft_wrap=True)


def fail(message: str, status: int = 1) -> NoReturn:
    """Say what went wrong on standard error and exit."""
    print(f"toolformer: {printable(message)}", file=sys.stderr, flush=True)
    raise SystemExit(status)
