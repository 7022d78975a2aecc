"""Where the calls of an earlier round stand in a text: no call is put inside another."""

from __future__ import annotations

from collections.abc import Iterator

from toolformer.api_call import CLOSE, OPEN, scan_call
from toolformer.tools import ToolRegistry

_LONGEST = 4_096
"""Characters of a call up to its result: more than any tool takes."""


def call_spans(text: str, tools: ToolRegistry) -> Iterator[range]:
    """The characters of each whole call ``e(c)`` or ``e(c, r)`` of ``tools``, from its opening space to its bracket."""
    at = text.find(OPEN)
    while at >= 0:
        body = at + len(OPEN)
        scan = scan_call(text[body : body + _LONGEST], tools.quoted_names)
        end = -1
        if scan.call is not None and scan.call.tool in tools:
            # A result has no bracket of its own: those are neutralised.
            end = body + scan.end if scan.mark == CLOSE else text.find(CLOSE, body + scan.end) + 1
        if end > 0:
            yield range(at, end)
        at = text.find(OPEN, max(end, body))


def outside(text: str, tools: ToolRegistry) -> list[bool]:
    """For each place before a character of ``text``, and the one at its end: whether it is inside no call."""
    free = [True] * (len(text) + 1)
    for span in call_spans(text, tools):
        for place in span[1:]:
            free[place] = False
    return free
