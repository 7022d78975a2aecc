"""Subcommands whose options belong to another module, which reads them with ``argparse``: they are shown under the
name that was typed, and look like the others."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from rich.box import ROUNDED
from rich.console import Console, Group
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text


def main_of(module: str) -> Callable[[Sequence[str]], int | None]:
    """``main(arguments)`` of a module, or of a package's ``__main__``."""
    found = importlib.import_module(module)
    if hasattr(found, "__path__"):
        found = importlib.import_module(f"{module}.__main__")
    main: Callable[[Sequence[str]], int | None] = found.main
    return main


@contextlib.contextmanager
def shown_as(command: str, examples: Sequence[str]) -> Iterator[None]:
    """Meanwhile every parser calls itself ``command``, and its help is drawn in boxes, with ``examples``."""
    # The modules make their parsers themselves, so it is the class that changes.
    plain_help, plain_error = argparse.ArgumentParser.print_help, argparse.ArgumentParser.error

    def print_help(parser: argparse.ArgumentParser, file: Any = None) -> None:
        parser.prog = command
        _show(parser, examples, Console(file=file, highlight=False))

    def error(parser: argparse.ArgumentParser, message: str) -> NoReturn:
        parser.prog = command
        plain_error(parser, message)

    argparse.ArgumentParser.print_help, argparse.ArgumentParser.error = print_help, error  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        argparse.ArgumentParser.print_help, argparse.ArgumentParser.error = plain_help, plain_error  # type: ignore[method-assign]


def _show(parser: argparse.ArgumentParser, examples: Sequence[str], console: Console) -> None:
    formatter = parser._get_formatter()
    usage = parser.usage or f"{parser.prog} [OPTIONS]"
    shown: list[Text] = [Text.assemble(("Usage: ", "yellow"), (usage % {"prog": parser.prog}, "bold"))]
    shown += [Text(" ".join(part.split())) for part in (parser.description or "").split("\n\n") if part]
    if examples:
        shown.append(Text("Examples:\n" + "\n".join(f"  {example}" for example in examples)))
    elif parser.epilog:
        epilog = re.sub(r"python -m [\w.]+", parser.prog, parser.epilog.strip())
        shown.append(Text(epilog.replace("examples:", "Examples:", 1)))
    console.print(Group(*(Padding(text, (1, 0, 0, 1)) for text in shown), ""))
    for group in parser._action_groups:
        actions = [action for action in group._group_actions if action.help != argparse.SUPPRESS]
        if actions:
            table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
            table.add_column(style="bold cyan", max_width=34)
            table.add_column()
            for action in actions:
                table.add_row(
                    formatter._format_action_invocation(action), formatter._expand_help(action) if action.help else ""
                )
            title = {"options": "Options", "positional arguments": "Arguments"}.get(group.title or "", group.title)
            console.print(Panel(table, title=title, title_align="left", border_style="dim", box=ROUNDED))
