"""Pages for people: one file with everything in it, nothing fetched, no service behind it; light or dark as the reader
has it, and readable on a phone.

A page's own file has three marks: ``/*STYLE*/`` for the style that all pages share, ``/*SCRIPT*/`` for the script that
they share, and ``/*DATA*/null`` for what it shows.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from training_jobs.runner.parts import write_whole

_HERE: Final = Path(__file__).parent
_STYLE: Final = "/*STYLE*/"
_SCRIPT: Final = "/*SCRIPT*/"
_DATA: Final = "/*DATA*/null"


def write_page(path: Path, template: Path, data: Any) -> None:
    """Write ``template`` filled with ``data`` (JSON) to ``path``."""
    # The texts are anybody's: "</script>" in one must not end the script that they are in.
    filling = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    page = template.read_text(encoding="utf-8")
    for mark, name in ((_STYLE, "style.css"), (_SCRIPT, "script.js")):
        page = page.replace(mark, (_HERE / name).read_text(encoding="utf-8").strip(), 1)
    head, tail = page.split(_DATA)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{head}{filling}{tail}".encode())
