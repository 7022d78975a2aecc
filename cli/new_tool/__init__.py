"""``toolformer new-tool``: a tool of one's own, from a template: its service, registry table, test and Dockerfile."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cli.components import load_registry
from cli.console import CommandError
from toolformer.names import find_name

_TEMPLATES = Path(__file__).parent


def write_tool(name: str, out: Path, port: int) -> list[Path]:
    """Write the tool called ``name`` into the folder ``out``, its service to listen on ``port``; the files.

    Raises:
        CommandError: if ``name`` is taken or no tool's name, or the folder has one of the files already.
    """
    files = {out / path.stem: path.read_text(encoding="utf-8") for path in sorted(_TEMPLATES.glob("*.template"))}
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is None:
        raise CommandError(f"{name!r}: a tool's name is a letter, then letters, digits or underscores")
    if there := next((path for path in files if path.exists()), None):
        raise CommandError(f"{there} is there already; give another --out")
    if taken := find_name(name, load_registry(os.environ).names()):
        raise CommandError(f"there is a tool {taken!r} already; choose another name")
    out.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        path.write_text(text.replace("TOOL_NAME", name).replace("TOOL_PORT", str(port)), encoding="utf-8")
    return list(files)
