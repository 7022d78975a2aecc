"""A stage that keeps nothing says so in one message: why, with examples from its output, and what to try.

What counts is the whole output of all its tools, whichever process, rank or earlier run made it: a rank's own share, or
one tool of several, may keep nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from pathlib import Path
from typing import Final

from rich.console import Console

from training_jobs.errors import NothingKept
from training_jobs.records import Annotated, Candidate, records_in

_EXAMPLES: Final = 3
_AROUND: Final = 40
_LONGEST: Final = 160
"""Characters of a text on either side of a call, and of an example."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a text or a call: the ``reason`` why it was dropped (``None``: it was kept), and how to show it.
    Those of most ``weight`` are shown."""

    reason: str | None
    example: str = ""
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Keeping:
    """How to see what a stage kept: the ``fates`` of the ``things`` (texts or calls) in a record of its output, what to
    try against a reason (``""``: any other; of a reason such as ``no result: CODE`` the part before the colon counts),
    and what to try where nothing came in."""

    things: str
    fates: Callable[[Annotated], Iterable[Fate]]
    remedies: Mapping[str, str]
    no_input: str = "run the stage before this one again: it says why it kept nothing"


@dataclass(slots=True)
class _Dropped:
    """What was dropped, by reason."""

    reasons: Counter[str] = field(default_factory=Counter)
    examples: defaultdict[str, list[Fate]] = field(default_factory=lambda: defaultdict(list))

    def see(self, reason: str, fate: Fate) -> None:
        self.reasons[reason] += 1
        shown = self.examples[reason]
        shown[:] = nlargest(_EXAMPLES, [*shown, fate], key=lambda one: one.weight)  # of equals the first


def check_kept(outputs: Mapping[str, Path], keeping: Keeping, console: Console) -> None:
    """Look into ``outputs``, by the names of their stages; if only some kept nothing, ``console`` gets the reasons.

    Raises:
        NothingKept: if nothing was kept in any of them.
    """
    empty = {name: dropped for name, path in outputs.items() if (dropped := _dropped(path, keeping)) is not None}
    lines = [line for name, dropped in empty.items() for line in _explained(name, dropped, keeping)]
    if lines and len(empty) == len(outputs):
        raise NothingKept("\n".join(lines))
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def in_text(one: Annotated, call: Candidate) -> str:
    """``call`` in its place, with some of the text around it."""
    text, at = one.document.text, call.offset
    result = "" if call.output is None else f" -> {call.output}"
    return f"{text[max(0, at - _AROUND) : at]} [{one.tool}({call.input}){result}]{text[at : at + _AROUND]}"


def printable(text: str) -> str:
    """``text`` on one line, and unable to steer the terminal: the texts are anybody's."""
    return "".join(character if character.isprintable() else " " for character in text)


def _dropped(path: Path, keeping: Keeping) -> _Dropped | None:
    """What was dropped in an output; ``None`` as soon as something in it was kept."""
    dropped = _Dropped()
    for record in records_in(path, Annotated):
        for fate in keeping.fates(record):
            if fate.reason is None:
                return None
            dropped.see(fate.reason, fate)
    return dropped


def _explained(name: str, dropped: _Dropped, keeping: Keeping) -> Iterator[str]:
    if not dropped.reasons:
        yield f"{name}: nothing was kept, for there were no {keeping.things}; try: {keeping.no_input}"
        return
    [(reason, number)] = dropped.reasons.most_common(1)
    yield f"{name}: nothing was kept; {number:,} of {dropped.reasons.total():,} {keeping.things}: {reason}, such as"
    for fate in dropped.examples[reason]:
        shown = " ".join(printable(fate.example).split())
        yield f"  {shown[:_LONGEST]}{'…' if len(shown) > _LONGEST else ''}"
    yield f"  try: {keeping.remedies.get(reason.partition(':')[0]) or keeping.remedies['']}"
