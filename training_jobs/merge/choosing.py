"""Which calls are in a text, and in which order: the rule that the paper leaves open.

1. A tool has examples in at most N texts; where more have its calls, N are drawn (the draw depends on seed, tool and
   the text's id alone, so neither on the order of the texts nor on the other tools).
2. A call in the middle of what its result says (`is_late`) is left out: a model would learn to begin the answer itself.
3. The same call (tool and input) occurs once in a text: where it gains most, but if it was proposed where the text goes
   on with its whole output, there, even if it gains less there than it must (unless the rule is strict). A result may
   be longer than the five tokens that a gain is measured on: by the gain alone a translation is in the middle of
   its sentence, before the word that is hardest to foresee.
4. Of one tool one call is at a position: the one that gains most. Of those with the same result it is first the one
   with the fewest words that the text before it does not say: what it found is the same, and the others ask with words
   that a model would have to make up.
5. At most so many calls are at a position: those that gain most. They are in the order of their gains, so that the
   call that helps most is next to what it helps with.

Of equal gains the call that was proposed first stays.
"""

from __future__ import annotations

import heapq
import string
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile
from typing import Final

from training_jobs.settings import positive, setting

_SMALL: Final = 3
"""Letters of words such as *is* and *the*, at most."""
_LOOKED_AT: Final = 200
"""Characters of a text on each side of a call; its words are few."""


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call that the filter kept, ``offset`` characters into its text."""

    tool: str
    offset: int
    input: str
    output: str
    gain: float
    foretells: bool = False
    """Whether the text goes on with the output."""
    unsaid: int = 0
    """Words of the input that the text before the call does not say."""


@dataclass(frozen=True, slots=True)
class MergeRule:
    """The rule's numbers; ``examples_per_tool`` is the paper's N (appendix B)."""

    examples_per_tool: int = setting(25_000, "texts with calls of a tool, at most", kind=positive)
    calls_per_position: int = setting(2, "calls of different tools at a position, at most", kind=positive)
    seed: int = setting(0, "draws the examples of a tool that has too many")
    strict: bool = setting(
        False,
        "put a call only where its own gain is tau_f or more, as in the paper; otherwise a call that was kept "
        "elsewhere in the text is also put where the text goes on with its whole result",
    )

    def __post_init__(self) -> None:
        if self.examples_per_tool < 1 or self.calls_per_position < 1:
            raise ValueError("examples_per_tool and calls_per_position must be 1 or more")


def drawn(ids: Iterable[str], tool: str, rule: MergeRule) -> set[str]:
    """The texts that are examples of ``tool``, out of ``ids``, which all have calls of it."""

    def ticket(id_: str) -> bytes:
        return blake2b(f"{rule.seed}\x1f{tool}\x1f{id_}".encode(), digest_size=16).digest()

    return set(heapq.nsmallest(rule.examples_per_tool, ids, key=ticket))


def drawn_by_tool(calls: Iterable[tuple[str, str]], rule: MergeRule) -> dict[str, set[str]]:
    """The texts that are examples of each tool, by its name; of ``calls`` the tool and the text's id."""
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for tool, id_ in calls:
        ids[tool].add(id_)
    return {tool: drawn(of_tool, tool, rule) for tool, of_tool in ids.items()}


def goes_on_with(text: str, output: str) -> bool:
    """Whether ``text`` begins with the words of ``output``, or those behind its ``Title > ``, whatever their case and
    punctuation."""
    begins = _words(text[: 2 * len(output) + 20])  # room for spaces
    return any(said and begins[: len(said)] == said for said in map(_words, (output, output.partition(" > ")[2])))


def is_late(before: str, behind: str, asked: str, output: str) -> bool:
    """Whether a call with the input ``asked`` stands in the middle of what its ``output`` says: the words right
    ``before`` it and the first ``behind`` it are side by side there, as in ``November [Calendar() -> Today is Monday,
    November 27, 1989.] 27``. Small words do not count, and neither do they all where what was asked about is among them
    (``A sitar is [WikiSearch("sitar") -> Sitar > A sitar is a string instrument.] a string`` is not late)."""
    earlier, said, first = _words(before[-_LOOKED_AT:]), _words(output), _words(behind[:_LOOKED_AT])[:1]
    shared = max(
        (_common_end(earlier, said[:at]) for at in range(len(said)) if said[at : at + 1] == first), key=len, default=[]
    )
    thing = set(_words(asked))
    return any(len(word) > _SMALL for word in shared) and not (thing and thing <= set(shared))


def _common_end(one: Sequence[str], other: Sequence[str]) -> list[str]:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return [word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]


def unsaid(before: str, asked: str) -> int:
    """How many words of the input ``asked`` the text ``before`` does not say, whatever their case and punctuation."""
    said = set(_words(before))
    return sum(word not in said for word in _words(asked))


def _words(text: str) -> list[str]:
    bare = (word.strip(string.punctuation).casefold() for word in text.split())
    return [word for word in bare if word]


def chosen(calls: Sequence[KeptCall], rule: MergeRule) -> list[KeptCall]:
    """The calls that are in a text, in their order there."""
    calls = _best(calls, lambda call: (call.tool, call.input), first=lambda call: not call.foretells)
    calls = _best(calls, lambda call: (call.tool, call.offset, call.output), first=lambda call: call.unsaid)
    calls = _best(calls, lambda call: (call.tool, call.offset))
    calls = _best(calls, lambda call: call.offset, rule.calls_per_position)
    return sorted(calls, key=lambda call: (call.offset, call.gain))


def _best(
    calls: Sequence[KeptCall],
    key: Callable[[KeptCall], Hashable],
    most: int = 1,
    first: Callable[[KeptCall], int] = lambda call: 0,
) -> list[KeptCall]:
    """Of each group of ``calls`` those ``most`` that have the least of ``first``, and of these those that gain most."""
    seen: dict[Hashable, int] = {}
    best = []
    for call in sorted(calls, key=lambda call: (first(call), -call.gain)):
        group = key(call)
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= most:
            best.append(call)
    return best
