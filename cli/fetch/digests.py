"""Digests of files, by the names that publishers give them under."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

CHUNK: Final = 1 << 20

Algorithm = Literal["sha256", "md5", "git-blob"]
"""``git-blob`` is what git, and so the hub, names a small file by: SHA-1 over its length and bytes."""


@dataclass(frozen=True, slots=True)
class Digest:
    """A published digest, in hexadecimal."""

    algorithm: Algorithm
    value: str


class Hashing:
    """SHA-256 of what passes, and the digest that a publisher gives, where that is another kind.

    ``size`` is the whole's, which ``git-blob`` begins with."""

    def __init__(self, expected: Digest | None, size: int | None) -> None:
        self.passed = 0
        self._expected = expected
        self._sha256 = hashlib.sha256()
        self._other = self._sha256
        if expected is not None and expected.algorithm == "md5":
            self._other = hashlib.md5(usedforsecurity=False)
        elif expected is not None and expected.algorithm == "git-blob":
            self._other = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)

    def update(self, data: bytes) -> None:
        """Take in the next bytes."""
        self.passed += len(data)
        self._sha256.update(data)
        if self._other is not self._sha256:
            self._other.update(data)

    def update_from(self, path: Path, stopped: Callable[[], bool] = lambda: False) -> None:
        """Take in a file, up to its end or until ``stopped`` says so."""
        with path.open("rb") as source:
            while (data := source.read(CHUNK)) and not stopped():
                self.update(data)

    @property
    def sha256(self) -> str:
        """SHA-256 of all that has passed."""
        return self._sha256.hexdigest()

    def wrong(self) -> str | None:
        """What differs from the published digest, or ``None``."""
        found = self._other.hexdigest()
        if self._expected is None or found == self._expected.value:
            return None
        return f"its {self._expected.algorithm} is {found}, published is {self._expected.value}"
