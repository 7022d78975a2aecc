"""API keys: which ones there are, whose a presented one is, and new ones without a restart.

Keys come from the environment or from a file, each as ``key`` or ``name:key``. Only their digests are kept, and they
are compared in a time that says nothing of how much of a key was right. A key never appears in a message or a log: its
name does. Two keys may have one name, which is how a client changes its key without a gap.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RELOAD_SECONDS: Final = 2.0
"""How often the file is looked at."""

_ENTRY: Final = re.compile(r"(?:([A-Za-z0-9_.@-]{1,64}):)?([!-+\--9;-~]{1,512})")
"""A name, if any, and a key of printable ASCII without space, comma and colon."""

logger = logging.getLogger(__name__)


class ApiKeyError(Exception):
    """Keys that cannot be read; the text says where and why, and repeats no key."""


@dataclass(frozen=True, slots=True)
class _Key:
    name: str
    digest: bytes


class ApiKeys:
    """The keys of ``listed``, a comma between them, and those of ``file``, one a line (``#`` begins a remark).

    With neither, there are no keys and `required` is false.

    Raises:
        ApiKeyError: an entry has not the right form, the file cannot be read, or there is no key in what was given.
    """

    def __init__(self, listed: str = "", file: Path | None = None) -> None:
        entries = [entry.strip() for entry in listed.split(",")]
        self._listed = _parse([entry for entry in entries if entry], "the list of keys")
        self._file = file
        self._seen: tuple[int, int, int] | None = None
        self._of_file: list[_Key] = []
        if file is not None:
            self._reload(file)
        self.required = file is not None or bool(listed.strip())
        """Whether a key is needed at all."""
        if self.required and not self._keys:
            raise ApiKeyError("there is no key in it; write one, as name:key or key")

    def name_of(self, presented: str) -> str | None:
        """The name of the key that ``presented`` is; ``None`` if it is none."""
        digest = _digest(presented)
        found = None
        for key in self._keys:  # all of them, so that the time does not show which one it was
            if hmac.compare_digest(key.digest, digest):
                found = key.name
        return found

    async def watch(self) -> None:
        """Read the file again whenever it has changed; runs until it is cancelled.

        What a file holds is taken as it is, so that a key that was taken out is refused from then on. A file that
        cannot be read or understood changes nothing and is tried again at each look; the log says what holds meanwhile.
        """
        trouble = ""
        while self._file is not None:
            await asyncio.sleep(RELOAD_SECONDS)
            try:
                changed = await asyncio.to_thread(self._reload, self._file)
            except Exception as error:  # also what says that no thread can be started: keys are watched on
                if str(error) != trouble:
                    trouble = str(error)
                    logger.error(
                        "the API keys stay as they were: %s: %s. Until it can be read, these keys are taken: %s",
                        self._file,
                        trouble,
                        ", ".join(sorted({key.name for key in self._keys})) or "none",
                    )
                continue
            if changed:
                logger.info("read the API keys again: there are %d", len(self._keys))
            elif trouble:
                logger.info("%s can be read again; it holds what it held", self._file)
            trouble = ""

    @property
    def _keys(self) -> Sequence[_Key]:
        return [*self._listed, *self._of_file]

    def _reload(self, file: Path) -> bool:
        """Read ``file`` if it is not the one that was read before; whether it was."""
        try:
            stat = file.stat()
            # A secret that is mounted into a container is replaced, not written: its inode shows it.
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp == self._seen:
                return False
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ApiKeyError(f"cannot be read: {reason}") from None
        entries = [line.partition("#")[0].strip() for line in lines]
        self._of_file = _parse(entries, "the file")
        self._seen = stamp  # only now: what could not be read is tried again, though nothing about the file changes
        return True


def _parse(entries: Sequence[str], where: str) -> list[_Key]:
    keys = []
    for number, entry in enumerate(entries, start=1):
        if not entry:
            continue
        parts = _ENTRY.fullmatch(entry)
        if parts is None:
            raise ApiKeyError(
                f"entry {number} of {where} is neither name:key nor key; a name has letters, digits, '.', '_', '-' and "
                "'@', a key printable ASCII characters without space, comma and colon"
            )
        name, key = parts.groups()
        keys.append(_Key(name or f"key-{number}", _digest(key)))
    return keys


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
