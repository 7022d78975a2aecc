"""Finding trigger strings in a stream of text, however the stream is cut into chunks.

A trigger (a stop string, the bracket that opens a call) may arrive split over several chunks. The matcher passes
text on as soon as it is safe: it holds back exactly the longest suffix that could still become a trigger, and
nothing more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Match:
    """``text`` was passed on before the trigger; ``trigger`` is ``None`` while none is complete; ``rest`` follows
    the trigger unread."""

    text: str
    trigger: str | None = None
    rest: str = ""


class TriggerMatcher:
    """Reports the first trigger of a stream: the one that begins first and, of those, the longest that is there.

    Of two triggers that begin at the same place the shorter is reported only once the longer can no longer come, so the
    reports are the same for every chunking.

    Raises:
        ValueError: if a trigger is empty.
    """

    def __init__(self, triggers: Sequence[str]) -> None:
        if any(not trigger for trigger in triggers):
            raise ValueError("a trigger must not be empty")
        self._triggers = tuple(sorted(set(triggers), key=len, reverse=True))
        # A trigger can only begin where one of the triggers' first characters stands.
        self._beginnings = re.compile("|".join({re.escape(trigger[0]) for trigger in triggers}) or "(?!)")
        self._held = ""

    @property
    def held(self) -> str:
        """Text received but neither passed on nor matched."""
        return self._held

    def restore(self, held: str) -> None:
        """Go back to a state in which ``held`` was what :attr:`held` gave."""
        self._held = held

    def feed(self, chunk: str) -> Match:
        """Take ``chunk``; after a match the matcher starts again, and ``rest`` is the caller's to feed again."""
        return self._advance(self._held + chunk, final=False)

    def flush(self) -> Match:
        """End the stream: what was held is text now, unless a trigger was waiting only for a longer one."""
        return self._advance(self._held, final=True)

    def _advance(self, text: str, *, final: bool) -> Match:
        for beginning in self._beginnings.finditer(text):
            at = beginning.start()
            tail = text[at:]
            if not final and any(len(t) > len(tail) and t.startswith(tail) for t in self._triggers):
                self._held = tail
                return Match(text[:at])
            for trigger in self._triggers:
                if tail.startswith(trigger):
                    self._held = ""
                    return Match(text[:at], trigger, tail[len(trigger) :])
        self._held = ""
        return Match(text)
