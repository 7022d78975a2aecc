"""Whether a fastText file is whole.

fastText reads what is there: of a file whose end is missing it makes, without a word, a classifier that guesses. The
format says how long each of its parts is, so the length of the whole can be told (fastText's version 12; its sources
are its only description).
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final

_MAGIC: Final = 793712314
_BEFORE_DICTIONARY: Final = 4 + 4 + 12 * 4 + 8
"""Magic number, version, twelve whole settings and one real one."""
_AFTER_WORD: Final = 8 + 1
"""How often an entry was seen, and whether it is a word or a label."""
_CENTROIDS: Final = 256


def is_whole(path: Path) -> bool:
    """Whether the file at ``path`` is a fastText model and ends where its parts do.

    Raises:
        OSError: it cannot be read.
    """
    if path.stat().st_size < _BEFORE_DICTIONARY:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            return _end(content) == len(content)
        except (struct.error, ValueError, IndexError):  # a part begins behind the file's end
            return False


def _end(content: mmap.mmap) -> int:
    """Where the model ends."""
    if struct.unpack_from("<i", content)[0] != _MAGIC:
        raise ValueError("not a fastText file")
    at = _BEFORE_DICTIONARY
    entries, _, _, _, pruned = struct.unpack_from("<iiiqq", content, at)
    at += struct.calcsize("<iiiqq")
    for _ in range(entries):
        found = content.find(b"\0", at)
        if found < 0:
            raise ValueError("an entry has no end")
        at = found + 1 + _AFTER_WORD
    at += max(0, pruned) * 8
    quantised = content[at] != 0
    at = _matrix_end(content, at + 1, quantised)
    return _matrix_end(content, at + 1, quantised and content[at] != 0)


def _matrix_end(content: mmap.mmap, at: int, quantised: bool) -> int:
    if not quantised:
        rows, columns = struct.unpack_from("<qq", content, at)
        return at + 16 + int(rows) * int(columns) * 4
    with_norms, rows, _, codes = struct.unpack_from("<?qqi", content, at)
    at = _quantiser_end(content, at + struct.calcsize("<?qqi") + codes)
    return _quantiser_end(content, at + int(rows)) if with_norms else at


def _quantiser_end(content: mmap.mmap, at: int) -> int:
    dimensions = struct.unpack_from("<i", content, at)[0]
    return at + 4 * 4 + int(dimensions) * _CENTROIDS * 4
