"""Calls put into a text: ``x* = x_1..x_{i-1}, e(c, r), x_i..x_n`` (section 2 of the paper), in segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolformer.api_call import ApiCall, neutralise
from toolformer.tools import ToolRegistry
from training_jobs.merge.choosing import KeptCall
from training_jobs.records import CallSegment, Merged

Segment = str | CallSegment


def put(calls: Sequence[KeptCall], into: Merged, registry: ToolRegistry) -> Merged:
    """``into`` with ``calls`` as well, in their order. Offsets count in its text with the calls that it has already
    (`rendered`); none may be inside one of these.

    Raises:
        ValueError: if an offset is behind the text's end or inside a call.
    """
    waiting = list(reversed(calls))
    segments: list[Segment] = []
    gains: list[float] = []
    earlier = iter(into.gains)
    at = 0

    def insert() -> None:
        call = waiting.pop()
        segments.append(CallSegment(call.tool, call.input, call.output))
        gains.append(call.gain)

    for segment in into.segments:
        text = rendered([segment], registry)
        start, end = at, at + len(text)
        while waiting and waiting[-1].offset <= start:
            insert()
        if isinstance(segment, str):
            while waiting and waiting[-1].offset < end:
                segments.append(segment[at - start : waiting[-1].offset - start])
                at = waiting[-1].offset
                insert()
            segments.append(segment[at - start :])
        else:
            if waiting and waiting[-1].offset < end:
                raise ValueError(f"{into.id}: offset {waiting[-1].offset} is inside a call")
            segments.append(segment)
            gains.append(next(earlier))
        at = end
    while waiting and waiting[-1].offset == at:
        insert()
    if waiting:
        raise ValueError(f"{into.id}: offset {waiting[-1].offset} is behind the end of the text")
    return Merged(into.id, tuple(joined(segments)), tuple(gains))


def rendered(segments: Iterable[Segment], registry: ToolRegistry) -> str:
    """The text as the model sees it, calls and results in it.

    Raises:
        UnknownTool: if a call's tool is not in the registry.
    """
    return "".join(
        segment
        if isinstance(segment, str)
        else ApiCall(segment.tool, segment.input).text(
            quoted=registry.get(segment.tool).quoted, result=neutralise(segment.output)
        )
        for segment in segments
    )


def calls_in(segments: Iterable[Segment]) -> list[CallSegment]:
    """The calls among the segments."""
    return [segment for segment in segments if isinstance(segment, CallSegment)]


def plain(segments: Iterable[Segment]) -> str:
    """The text without its calls."""
    return "".join(segment for segment in segments if isinstance(segment, str))


def joined(segments: Iterable[Segment]) -> list[Segment]:
    """The segments without empty ones, neighbouring strings made one."""
    found: list[Segment] = []
    for segment in segments:
        if isinstance(segment, str) and found and isinstance(found[-1], str):
            found[-1] += segment
        elif segment:
            found.append(segment)
    return found
