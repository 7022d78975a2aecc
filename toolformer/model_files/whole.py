"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final


@contextlib.contextmanager
def whole(path: Path, *, shared: bool = False) -> Iterator[Path]:
    """The name to write ``path`` under. At the end it becomes ``path``, so that readers, and anyone who starts after a
    kill, find the whole file or the one that was there before. Nothing is left of it where the block fails.
    ``shared``: several processes may write it at once.

    Raises:
        OSError: it cannot be written.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial" if shared else f"{path.name}.partial")
    try:
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes | str) -> None:
    """Write ``data`` (text as UTF-8) to ``path``; see :func:`whole`.

    Raises:
        OSError: it cannot be written.
    """
    with whole(path, shared=True) as partial:
        partial.write_bytes(data.encode() if isinstance(data, str) else data)


_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Of what libraries in other languages raise only the text is left: safetensors', and that of torch's archive writer.
_WORDS: Final = ("No space left on device", "Disk quota exceeded", "File too large", "file write failed")


def is_full(error: BaseException) -> bool:
    """Whether ``error``, or what led to it, is a full disk, a used up quota, or a limit of a file's size."""
    seen: BaseException | None = error
    while seen is not None:
        if (isinstance(seen, OSError) and seen.errno in _FULL) or any(words in str(seen) for words in _WORDS):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
