"""Names that people type: capitals and underscores do not count, and a wrong name gets the nearest right one."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches


def find_name(given: str, known: Collection[str]) -> str | None:
    """The name of ``known`` that ``given`` means, ``None`` if there is none or more than one."""
    if given in known:
        return given
    found = [name for name in known if _plain(name) == _plain(given)]
    return found[0] if len(found) == 1 else None


def did_you_mean(given: str, known: Collection[str]) -> str:
    """``did you mean 'x'? `` for the name of ``known`` that is nearest to ``given``, empty if none is near."""
    plain = {_plain(name): name for name in known}
    # What somebody types is compared with each name, so its length is bounded.
    close = get_close_matches(_plain(given[:100]), plain, n=1)
    return f"did you mean {plain[close[0]]!r}? " if close else ""


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()
