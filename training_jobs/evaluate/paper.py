"""The paper's own figures (tables 3 to 9), to be beside a run's."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).with_name("paper.toml")


@cache
def _figures() -> dict[str, Any]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def models() -> tuple[str, ...]:
    """The models of the tables, in their order."""
    return tuple(_figures()["models"])


def figure(suite: str, model: str) -> float | None:
    """What ``model`` has on ``suite`` in the paper: percent, or perplexity of texts; ``None`` where it has none."""
    value = _figures()["suites"].get(suite, {}).get(model)
    return None if value is None else float(value)


def decoding(suite: str, k: int) -> dict[str, float] | None:
    """Table 9 for ``suite`` at ``k``: percent right of ``all`` examples, of those ``with`` a call and
    ``without`` (absent where there is none), and percent of examples with ``calls``."""
    return next((dict(row) for row in _figures()["decoding"].get(suite, ()) if row["k"] == k), None)
