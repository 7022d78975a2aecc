"""The calls that a text has in it already, as an earlier round, a demonstration or a client wrote them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolformer.api_call import CLOSE, OPEN, Tokenizer, call_ids, empty_call_ids, scan_call
from toolformer.tools import ToolRegistry

_LONGEST: Final = 4_096
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


def encode_with_calls(text: str, tokenizer: Tokenizer, tools: ToolRegistry) -> list[int]:
    """Ids of ``text``; those of its calls of ``tools`` have the vocabulary's special marks, where there are such."""
    if not tokenizer.marks.special:
        return tokenizer.encode(text)
    ids: list[int] = []
    done = 0
    for span in call_spans(text, tools):
        ids += tokenizer.encode(text[done : span.start]) + _ids_of(text[span.start : span.stop], tokenizer, tools)
        done = span.stop
    return ids + tokenizer.encode(text[done:])


def _ids_of(written: str, tokenizer: Tokenizer, tools: ToolRegistry) -> list[int]:
    """Ids of a whole call as text has it."""
    body = written.removeprefix(OPEN)
    scan = scan_call(body, tools.quoted_names)
    assert scan.call is not None
    quoted = tools.get(scan.call.tool).quoted
    result = body[scan.end :].removesuffix(CLOSE).strip()
    if scan.mark == CLOSE:
        return call_ids(scan.call, tokenizer, quoted=quoted)
    if not result:
        return empty_call_ids(scan.call, tokenizer, quoted=quoted)
    return call_ids(scan.call, tokenizer, quoted=quoted, result=result)
