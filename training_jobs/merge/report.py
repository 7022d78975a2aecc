"""The page on which a person looks at what the filter kept: one file, nothing fetched, no service behind it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from training_jobs.merge.examples import Example
from training_jobs.merge.table import ToolCounts, rows
from training_jobs.stages.parts import write_whole

_PAGE: Final = Path(__file__).with_name("report.html")
_MARK: Final = "/*DATA*/null"


def write_report(
    path: Path, counts: dict[str, ToolCounts], examples: Sequence[Example], about: Mapping[str, Any]
) -> None:
    """Write the page to ``path``; ``about`` are facts to stand on top, by name."""
    heading, body = rows(counts)
    data = {
        "about": {name: str(value) for name, value in about.items()},
        "heading": heading,
        "rows": body,
        "verdicts": {tool: dict(one.verdicts.most_common()) for tool, one in counts.items()},
        "examples": [example.as_json() for example in examples],
    }
    # The texts are anybody's: "</script>" in one must not end the script that they stand in.
    told = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
    page = _PAGE.read_text(encoding="utf-8")
    head, tail = page.split(_MARK)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, f"{head}{told}{tail}".encode())
