"""``toolformer call`` and ``toolformer tools``."""

from __future__ import annotations

import asyncio
import datetime as dt
import os

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.components import load_registry, tool_name
from cli.console import CommandError, printable
from toolformer.names import find_name
from toolformer.tool_client import ToolClient

_PLAIN_WIDTH = 200
"""Columns of a table that no terminal shows: enough that no cell is cut."""


async def call_tool(name: str, text: str, date: dt.date | None) -> None:
    """Call a tool and print its output.

    Raises:
        CommandError: the tool has no answer; code and message say why.
    """
    registry = load_registry(os.environ)
    async with ToolClient(registry) as client:
        result = await client.call(find_name(tool_name(name), registry.names()) or name, text, date=date)
    if result.error is not None:
        raise CommandError(f"{result.error.code}: {result.error.message}")
    print(printable(result.output or ""))


async def show_tools() -> None:
    """Print a table of the registry, each service asked at the same time whether it can answer."""
    registry = load_registry(os.environ)
    async with ToolClient(registry) as client:
        readiness = await asyncio.gather(*(client.ready(name) for name in registry.names()))
    table = Table("tool", "address", "state", "pure", "deadline", "input", "result", "batch", box=None, pad_edge=False)
    for tool, ready in zip(registry, readiness, strict=True):
        table.add_row(
            tool.name,
            tool.address,
            Text("up", "green") if ready else Text(f"down: {printable(ready.reason)}", "red"),
            "yes" if tool.pure else "no",
            f"{tool.timeout_s:g} s",
            f"{tool.max_input_tokens} tokens" if tool.takes_input else "none",
            f"{tool.max_result_tokens} tokens",
            f"{tool.max_batch} calls",
        )
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = _PLAIN_WIDTH
    console.print(table)
