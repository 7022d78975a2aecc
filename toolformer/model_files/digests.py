"""Digests of files: one list in a folder, ``SHA256SUMS``, which ``sha256sum --check`` reads as well.

What writes a model or an index records it last; what opens it compares. At a start files up to `AT_START` bytes
are read for this; larger ones would hold a start up, so `toolformer doctor` reads those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from toolformer.model_files.whole import write_whole

SUMS: Final = "SHA256SUMS"
AT_START: Final = 1 << 30
"""Bytes of the largest file that is read at a start: about a second's work."""


_ENDS: Final = 1 << 20
_READ_WHOLE: Final = (".json", ".txt", ".model")


class DamagedError(Exception):
    """A file is not what was written; the message names it."""


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def quick_digest(path: Path) -> str:
    """A digest of the file's length and of its first and last megabyte, as weights and corpora have gigabytes; of small
    files and vocabularies of all."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        if path.suffix in _READ_WHOLE or size <= 2 * _ENDS:
            digest.update(file.read())
        else:
            digest.update(file.read(_ENDS))
            file.seek(-_ENDS, 2)
            digest.update(file.read())
    return digest.hexdigest()[:32]


def forget(folder: Path) -> None:
    """Take the list away, before files change."""
    (folder / SUMS).unlink(missing_ok=True)


def record(folder: Path, names: Iterable[str] | None = None) -> None:
    """Write the list of ``names``, files in ``folder``; of all that it holds if none are given.

    Raises:
        OSError: a file cannot be read, or the list cannot be written.
    """
    if names is None:
        names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_digest(folder / name)}  {name}\n" for name in sorted(names) if name != SUMS]
    write_whole(folder / SUMS, "".join(lines))


def recorded(folder: Path) -> dict[str, str]:
    """The digests of the list by the files' names; none where there is no list.

    Raises:
        DamagedError: the list is broken.
    """
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
        return {name.lstrip("*"): digest for digest, name in (line.split(maxsplit=1) for line in lines)}
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DamagedError(f"{folder / SUMS} is no list of digests ({error})") from error


def check(
    folder: Path, digests: Mapping[str, str] | None = None, *, name: str | None = None, at_most: int | None = AT_START
) -> int:
    """Compare the files of ``folder`` with their digests.

    Args:
        folder: where they are.
        digests: by name; those of the folder's list if not given.
        name: the only file to compare.
        at_most: bytes of the largest file that is read; ``None`` for no limit.

    Returns:
        How many files were read and are what was written.

    Raises:
        DamagedError: a file is missing, cannot be read or differs.
    """
    wanted = recorded(folder) if digests is None else digests
    read = 0
    for one, digest in wanted.items():
        path = folder / one
        if name not in (None, one):
            continue
        try:
            if at_most is None or path.stat().st_size <= at_most:
                if file_digest(path) != digest:
                    raise DamagedError(f"{path} is damaged: its digest is not the one that was written down")
                read += 1
        except OSError as error:
            raise DamagedError(f"{path} cannot be read: {error.strerror}") from error
    return read
