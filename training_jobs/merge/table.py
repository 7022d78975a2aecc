"""How many examples a tool has at several thresholds: the table like the paper's Table 2."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from rich.table import Table

from training_jobs.records import KEPT, Annotated

THRESHOLDS: Final = (0.5, 1.0, 2.0)
"""``tau_f`` of the paper's Table 2, in nats."""
PAPER: Final = {
    "QA": (51_987, 18_526, 5_135),
    "WikiSearch": (207_241, 60_974, 13_944),
    "Calculator": (3_680, 994, 138),
    "Calendar": (61_811, 20_587, 3_007),
    "MT": (3_156, 1_034, 229),
}
"""The paper's Table 2: examples of each tool in C* at `THRESHOLDS`."""
UNFIT: Final = ("looks ahead",)
"""Verdicts that no threshold changes, though the gain is known."""
_NONE: Final = "-"


@dataclass(slots=True)
class ToolCounts:
    """Counts of one tool: texts and candidates seen; at each threshold of `THRESHOLDS` the texts with such a call and
    such calls; what was kept; and the reasons for the rest."""

    texts: int = 0
    candidates: int = 0
    texts_at: list[int] = field(default_factory=lambda: [0] * len(THRESHOLDS))
    calls_at: list[int] = field(default_factory=lambda: [0] * len(THRESHOLDS))
    texts_kept: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    merged_texts: int = 0
    merged_calls: int = 0

    def see(self, record: Annotated) -> None:
        """Count a filtered text."""
        gains = [one.gain for one in record.candidates if one.gain is not None and one.verdict not in UNFIT]
        self.texts += 1
        self.candidates += len(record.candidates)
        for number, threshold in enumerate(THRESHOLDS):
            calls = sum(gain >= threshold for gain in gains)
            self.calls_at[number] += calls
            self.texts_at[number] += calls > 0
        self.verdicts.update(one.verdict or "not judged" for one in record.candidates)
        self.texts_kept += any(one.verdict == KEPT for one in record.candidates)

    def as_json(self) -> dict[str, Any]:
        """Plain values, in a fixed order."""
        return {
            "texts": self.texts,
            "candidates": self.candidates,
            "texts with a gain of at least": dict(zip(map(str, THRESHOLDS), self.texts_at, strict=True)),
            "calls with a gain of at least": dict(zip(map(str, THRESHOLDS), self.calls_at, strict=True)),
            "texts with a kept call": self.texts_kept,
            "verdicts": dict(sorted(self.verdicts.items())),
            "texts of it in C*": self.merged_texts,
            "calls of it in C*": self.merged_calls,
        }


def rows(counts: dict[str, ToolCounts]) -> tuple[list[str], list[list[str]]]:
    """Heading and rows of the table, for print and page."""
    gains = [f"gain ≥ {threshold:g}" for threshold in THRESHOLDS]
    heading = ["tool", "texts", "candidates", *gains, "kept", "in C*", *(f"paper: {gain}" for gain in gains)]
    body = [
        [
            tool,
            *(f"{number:,}" for number in (one.texts, one.candidates, *one.texts_at, one.texts_kept, one.merged_texts)),
            *(f"{number:,}" for number in PAPER.get(tool, ())),
            *(_NONE for _ in THRESHOLDS if tool not in PAPER),
        ]
        for tool, one in counts.items()
    ]
    return heading, body


def printed(counts: dict[str, ToolCounts]) -> Table:
    """The table for a terminal. All but ``candidates`` count texts."""
    heading, body = rows(counts)
    table = Table(title="texts with such a call, by tool", box=None, pad_edge=False)
    for number, name in enumerate(heading):
        table.add_column(name, justify="right" if number else "left")
    for row in body:
        table.add_row(*row)
    return table
