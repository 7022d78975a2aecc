"""Calls to look at, as in the paper's Table 10: with their gains, in their text, kept or not."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toolformer.api_call import ApiCall, neutralise
from toolformer.tools import Tool, ToolRegistry
from training_jobs.merge.kept import records
from training_jobs.records import KEPT, Annotated, Candidate

KEPT_SHOWN: Final = 200
REST_SHOWN: Final = 60
"""Examples of each tool on the page: kept calls, and calls that were executed but not kept."""
AROUND: Final = 400
"""Characters of the text on either side of a call."""


@dataclass(frozen=True, slots=True)
class CallInText:
    """A call in its text."""

    tool: str
    id: str
    url: str | None
    before: str
    call: str
    result: str
    after: str
    gain: float
    losses: tuple[float | None, float | None, float | None]
    probability: float
    verdict: str


def examples(files: Mapping[str, Path], registry: ToolRegistry) -> list[CallInText]:
    """Of each tool's filtered file the kept and the other calls that gain most; by tool, then falling gain.

    Raises:
        StageError: if a file cannot be read.
        UnknownTool: if a tool is not in the registry.
    """
    return [example for tool, path in files.items() for example in _of_tool(registry.get(tool), path)]


def _of_tool(tool: Tool, path: Path) -> Iterator[CallInText]:
    kept: list[tuple[float, int, CallInText]] = []
    rest: list[tuple[float, int, CallInText]] = []
    numbered = enumerate((record, one) for _, record in records(path) for one in record.candidates)
    for number, (record, candidate) in numbered:
        if candidate.gain is not None and candidate.output is not None:
            pool, most = (kept, KEPT_SHOWN) if candidate.verdict == KEPT else (rest, REST_SHOWN)
            # Numbers are before examples, which do not compare; of equal gains the first stays.
            entry = (candidate.gain, -number, _example(tool, record, candidate))
            heapq.heappush(pool, entry) if len(pool) < most else heapq.heappushpop(pool, entry)
    yield from (example for *_, example in sorted([*kept, *rest], key=lambda one: one[:2], reverse=True))


def _example(tool: Tool, record: Annotated, candidate: Candidate) -> CallInText:
    text, at = record.document.text, candidate.offset
    call = ApiCall(record.tool, candidate.input).head(quoted=tool.quoted)
    return CallInText(
        tool=record.tool,
        id=record.document.id,
        url=record.document.url,
        before=("…" if at > AROUND else "") + text[max(0, at - AROUND) : at],
        call=call,
        result=neutralise(candidate.output or ""),
        after=text[at : at + AROUND] + ("…" if len(text) > at + AROUND else ""),
        gain=candidate.gain or 0.0,
        losses=(candidate.loss_empty, candidate.loss_call, candidate.loss_result),
        probability=candidate.start_probability,
        verdict=candidate.verdict or "",
    )
