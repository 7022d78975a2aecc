"""A log that is followed over broken connections: every line is given once.

Docker and Kubernetes put the same stamp before a line when asked to (``2026-11-21T16:00:00.123456789Z text``, RFC 3339;
Kubernetes in the node's own time zone). After a connection broke, the log is asked for again from a little before the
last stamp, and what was given already is left out.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d) ?")
_OVERLAP_SECONDS: Final = 2
"""Lines of two streams are stamped before they are written, so that one may stand behind a later one."""


class LogLines:
    """What was given of one log so far."""

    def __init__(self) -> None:
        self._newest = 0
        self._given: Counter[tuple[int, str]] = Counter()
        """The last seconds' lines with their stamps, which come again when the log is asked for again."""

    def since(self) -> dt.datetime | None:
        """From when on to ask for the rest; ``None`` for all of it."""
        return dt.datetime.fromtimestamp(self._newest - _OVERLAP_SECONDS, dt.UTC) if self._newest else None

    def fresh(self, pieces: Iterable[bytes], *, ended: bool) -> Iterator[str]:
        """The lines in ``pieces`` of the stamped log from `since` on, without their stamps, that were not given before.

        What stands behind the last line's end is a line only where the log has ``ended``; else it was cut, and comes
        again.
        """
        again = self._given.copy()
        for line in _lines(pieces, ended):
            stamp = _STAMP.match(line)
            if stamp is None:
                yield line
                continue
            second = int(dt.datetime.fromisoformat(stamp[1] + stamp[2]).timestamp())
            if again[second, line]:
                again[second, line] -= 1
                continue
            self._remember(second, line)
            yield line[stamp.end() :]

    def _remember(self, second: int, line: str) -> None:
        if second > self._newest:
            self._newest = second
            oldest = second - _OVERLAP_SECONDS
            self._given = Counter({key: count for key, count in self._given.items() if key[0] >= oldest})
        self._given[second, line] += 1


def _lines(pieces: Iterable[bytes], ended: bool) -> Iterator[str]:
    rest = b""
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield _text(line)
    if rest and ended:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.decode("utf-8", errors="replace").rstrip("\r")
