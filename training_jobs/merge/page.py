"""The page on which a person looks at what the filter kept: one file, nothing fetched, no service behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from training_jobs.merge.examples import CallInText
from training_jobs.merge.table import ToolCounts, rows
from training_jobs.pages import write_page

_PAGE: Final = Path(__file__).with_name("report.html")


def write_report(
    path: Path, counts: dict[str, ToolCounts], examples: Sequence[CallInText], about: Mapping[str, Any]
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
    write_page(path, _PAGE, data)
