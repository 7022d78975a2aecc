"""What is reported of a load that was driven."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.reports import percentiles
from benchmarks.serving.load import Driven
from benchmarks.serving.record import Record

Span = tuple[float, float]


def figures(driven: Driven) -> dict[str, Any]:
    """Latencies in milliseconds, rates a second.

    Rates are of the time in which no client was idle, or of the whole where too little happened in it to tell.
    ``tokens_per_s_in_calls`` is of the moments in which at least one request waited for a tool."""
    records = driven.records
    span = (driven.steady, driven.last_begun)
    if sum(span[0] <= one.ended < span[1] for one in records) < len(records) / 4:
        span = (driven.began, max(one.ended for one in records) + 1e-9)
    calling = overlap(union(call for record in records for call in record.calls), span)
    resumes = [seconds for record in records for seconds in record.resumes]
    between = [seconds for record in records for seconds in record.between]
    calls = sum(len(record.calls) for record in records)
    reported: dict[str, Any] = {
        "requests": len(records),
        "calls": calls,
        "seconds": round(span[1] - span[0], 2),
        "requests_per_s": round(sum(span[0] <= one.ended < span[1] for one in records) / (span[1] - span[0]), 2),
        "tokens_per_s": round(tokens(records, [span]) / (span[1] - span[0]), 1),
        "request_ms": percentiles([one.ended - one.arrived for one in records]),
        "first_token_ms": percentiles([one.first - one.arrived for one in records if one.first is not None]),
    }
    if between:
        reported["between_tokens_ms"] = percentiles(between)
    if resumes:
        reported["resume_ms"] = percentiles(resumes)
    if calls:
        reported["recomputed_per_call"] = round(sum(one.recomputed for one in records) / calls, 2)
        reported["calls_ms"] = percentiles([end - begin for one in records for begin, end in one.calls])
    if length := sum(end - begin for begin, end in calling):
        reported["tokens_per_s_in_calls"] = round(tokens(records, calling) / length, 1)
    return reported


def tokens(records: Sequence[Record], spans: Sequence[Span]) -> int:
    """Tokens that came within any of ``spans``, which do not overlap."""
    came = [(when, count) for record in records for when, count in record.came]
    return sum(count for when, count in came if any(begin <= when < end for begin, end in spans))


def union(spans: Iterable[Span]) -> list[Span]:
    """The moments within any of ``spans``, as spans that do not overlap, in order."""
    joined: list[Span] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined


def overlap(spans: Iterable[Span], window: Span) -> list[Span]:
    """The parts of ``spans`` that lie in ``window``."""
    cut = ((max(begin, window[0]), min(end, window[1])) for begin, end in spans)
    return [(begin, end) for begin, end in cut if begin < end]
