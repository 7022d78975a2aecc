"""Finds finished calls in a stream of text, however it is cut into chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from toolformer.api_call import CLOSE, scan_call

LONGEST_CALL: Final = 4_000
"""Characters after which an open bracket is no longer taken for the beginning of a call."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the text; ``is_call`` if it is one whole call, brackets included."""

    text: str
    is_call: bool = False


class CallHighlighter:
    """Separates calls from plain text; holds back only what may still turn out to be a call.

    Args:
        names: the tools' names; a bracket before any other word is plain text.
        quoted_names: those whose input is in double quotes.
    """

    def __init__(self, names: Collection[str], quoted_names: Collection[str]) -> None:
        self._names = names
        self._quoted_names = quoted_names
        self._held = ""

    def feed(self, text: str) -> Iterator[Span]:
        """The spans that ``text`` completes, in order."""
        self._held += text
        while self._held:
            plain, bracket, _ = self._held.partition("[")
            if plain:
                yield Span(plain)
            self._held = self._held[len(plain) :]
            if not bracket:
                return
            length = self._call_length()
            if length is None:
                return
            yield Span(self._held[: length or 1], is_call=length > 0)
            self._held = self._held[length or 1 :]

    def flush(self) -> Iterator[Span]:
        """What was held back, at the end of the text."""
        held, self._held = self._held, ""
        if held:
            yield Span(held)

    def _call_length(self) -> int | None:
        """Characters of the call that the held text begins with; 0 if it begins with none, ``None`` while undecided."""
        undecided = None if len(self._held) < LONGEST_CALL else 0
        scan = scan_call(self._held[1:], self._quoted_names)
        if scan.refused or (scan.tool is not None and scan.tool not in self._names):
            return 0
        if scan.call is None:
            return undecided
        if scan.mark == CLOSE:
            return 1 + scan.end
        end = self._held.find(CLOSE, 1 + scan.end)
        return end + 1 if end >= 0 else undecided
