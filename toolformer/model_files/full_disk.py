"""Whether an error says that nothing more can be written, whichever library met it."""

from __future__ import annotations

import errno
from typing import Final

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
