"""Whether a fastText file can be given to the library.

fastText believes what it reads: of a file whose end is missing it makes, without a word, a classifier that guesses, and
of a broken header a process that ends at the first text, or works on it for minutes. The format says how long each of
its parts is, and its numbers depend on one another (fastText's version 12; its sources are its only description).
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Final

import numpy as np

_MAGIC: Final = 793712314
_VERSIONS: Final = (11, 12)
_BEFORE_DICTIONARY: Final = 4 + 4 + 12 * 4 + 8
"""Magic number, version, twelve whole settings and one real one."""
_AFTER_WORD: Final = 8 + 1
"""How often an entry was seen, and whether it is a word or a label."""
_CENTROIDS: Final = 256
_SUPERVISED: Final = 3
_LOSSES: Final = range(1, 5)
_LONGEST: Final = 64
"""Of a word's parts in characters, and of a run of words: each text costs as much as these say."""
_MOST_BUCKETS: Final = 1 << 30
"""The published ones have two million; a pruned file says nothing else by which a wrong number would be noticed."""
_MOST: Final = 1 << 40


def why_unusable(path: Path) -> str | None:
    """Why the file at ``path`` is no whole fastText classifier; ``None`` if it is one.

    Raises:
        OSError: it cannot be read.
    """
    if path.stat().st_size < _BEFORE_DICTIONARY:
        return "it is no whole fastText file: it is too short"
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            end = _end(content)
        except _BrokenError as error:
            return f"it is no whole fastText classifier: {error}"
        except (struct.error, ValueError, IndexError, OverflowError):  # a part begins behind the file's end
            return "it is no whole fastText file: it ends too early"
        return None if end == len(content) else f"it is no whole fastText file: {len(content):,} bytes, not {end:,}"


class _BrokenError(Exception):
    """Something in the file cannot be."""


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise _BrokenError(f"{what} cannot be")


def _end(content: mmap.mmap) -> int:
    """Where the model ends."""
    magic, version, dim, _, _, _, _, ngrams, loss, model, bucket, least, most, *_ = struct.unpack_from("<14i", content)
    if magic != _MAGIC:
        raise _BrokenError("it does not begin like one")
    _require(version in _VERSIONS, f"version {version}")
    _require(model == _SUPERVISED, f"a model of kind {model}")
    _require(loss in _LOSSES, f"a loss of kind {loss}")
    _require(1 <= ngrams <= _LONGEST, f"runs of {ngrams} words")
    if version == min(_VERSIONS):
        most = 0  # the library takes no parts of words then
    _require(0 <= least <= _LONGEST, f"parts of words from {least} characters")
    _require(0 <= most <= _LONGEST, f"parts of words up to {most} characters")
    _require((1 if most or ngrams > 1 else 0) <= bucket <= _MOST_BUCKETS, f"{bucket} buckets")
    at = _BEFORE_DICTIONARY
    entries, words, labels, _, pruned = struct.unpack_from("<iiiqq", content, at)
    at += struct.calcsize("<iiiqq")
    _require(entries == words + labels and words >= 0 and labels > 0, f"{entries} words and labels")
    counted = [0, 0]
    for _ in range(entries):
        found = content.find(b"\0", at)
        if found < 0:
            raise ValueError("an entry has no end")
        at = found + 1 + _AFTER_WORD
        kind = content[at - 1]
        _require(kind in (0, 1), f"an entry of kind {kind}")
        counted[kind] += 1
    _require(counted == [words, labels], f"{words} words and {labels} labels")
    rows = words + bucket
    if pruned >= 0:
        pairs = np.frombuffer(content[at : at + pruned * 8], dtype="<i4").reshape(-1, 2)
        _require(len(pairs) == pruned and bool(((pairs >= 0) & (pairs < (bucket, pruned))).all()), "a pruned list")
        at, rows = at + pruned * 8, words + pruned
    quantised = _flag(content, at)
    at = _matrix_end(content, at + 1, quantised, (rows, dim))
    return _matrix_end(content, at + 1, _flag(content, at) and quantised, (labels, dim))


def _flag(content: mmap.mmap, at: int) -> bool:
    _require(content[at] in (0, 1), f"a flag of {content[at]}")
    return content[at] == 1


def _matrix_end(content: mmap.mmap, at: int, quantised: bool, shape: tuple[int, int]) -> int:
    if not quantised:
        found = struct.unpack_from("<qq", content, at)
        _require(found == shape, f"a matrix of {found} where {shape} are needed")
        return _reals_end(content, at + 16, found[0] * found[1])
    with_norms, rows, columns, codes = struct.unpack_from("<?qqi", content, at)
    _require((rows, columns) == shape, f"a matrix of {rows, columns} where {shape} are needed")
    at += struct.calcsize("<?qqi") + codes
    at, parts = _quantiser_end(content, at, columns)
    _require(codes == rows * parts, f"{codes} codes")
    return _quantiser_end(content, at + rows, 1)[0] if with_norms else at


def _quantiser_end(content: mmap.mmap, at: int, columns: int) -> tuple[int, int]:
    """Where a quantiser of ``columns`` ends, and into how many parts it cuts them."""
    dimensions, parts, width, last = struct.unpack_from("<4i", content, at)
    _require(dimensions == columns and width > 0 and 0 < last <= width, f"a quantiser of {dimensions} by {width}")
    _require(parts * width - width + last == columns, f"a quantiser of {parts} parts")
    return _reals_end(content, at + 16, dimensions * _CENTROIDS), parts


def _reals_end(content: mmap.mmap, at: int, count: int) -> int:
    """Where ``count`` real numbers end, each of which is one."""
    _require(0 <= count < _MOST, f"{count} numbers")
    end = at + 4 * count
    if end > len(content):
        raise ValueError("they end behind the file")
    for first in range(at, end, 1 << 22):
        numbers = np.frombuffer(content[first : min(end, first + (1 << 22))], dtype="<f4")
        _require(bool(np.isfinite(numbers).all()), "a weight that is no number")
    return end
