"""What models are trained on and what is held out, decided once for everyone.

A split that each generator drew for itself would leak: a city held out of one corpus would be trained on
through another. So the question is answered here by a stable hash of the thing itself, with no list to keep
and no state.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final, TypeVar

ThingT = TypeVar("ThingT")

SEED: Final = "toolformer-demo-world-1"
HELD_OUT_PERCENT: Final = 10.0

_BUCKETS: Final = 1 << 32


def is_held_out(kind: str, key: str | int, *, percent: float = HELD_OUT_PERCENT) -> bool:
    """Whether the thing `key` of the family `kind` is kept out of everything that a model is trained on.

    `kind` names the family ("city", "integer", ...), so that one name in two families is split apart; `key`
    is the thing's stable key. An integer and its decimal text are the same key. The same arguments give the
    same answer on every machine and in every process. `percent` is the share held out, 0 to 100; a thing held
    out at one share is held out at every larger one. Raises ValueError for an empty kind or a share outside
    the range.
    """
    if not kind:
        raise ValueError("kind is empty: name the family of things being split, for example 'city'")
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"percent is {percent}: give a share from 0 to 100")
    return stable_hash(kind, str(key)) % _BUCKETS < percent / 100.0 * _BUCKETS


def on_side(
    kind: str,
    things: Iterable[ThingT],
    *,
    held_out: bool,
    key: Callable[[ThingT], str] = str,
    percent: float = HELD_OUT_PERCENT,
) -> tuple[ThingT, ...]:
    """Those of `things` on one side of the split, in order; `key` gives the stable key of one."""
    return tuple(thing for thing in things if is_held_out(kind, key(thing), percent=percent) is held_out)


def stable_hash(*parts: str) -> int:
    """A 64-bit number that depends on `parts` and their order alone, the same in every process and on every
    machine.

    It also picks phrasings and orders samples; Python's own `hash` differs between processes.
    """
    joined = "\x1f".join((SEED, *parts))
    return int.from_bytes(blake2b(joined.encode(), digest_size=8).digest())
