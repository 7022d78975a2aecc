"""The packages of each role, as requirements.lock has them: pinned, with hashes, and with the roles that need them.

    python cli/roles.py ROLE... | pip install --no-deps --require-hashes -r /dev/stdin

A role is an extra or a group of pyproject.toml; ``base`` is what the package itself needs. torch for CPUs comes from
elsewhere and has no hash here: only with ``--cuda`` are torch and its CUDA packages among the others. Images run this
file alone, so it imports nothing but the standard library. ``.ci/lock.py`` writes the roles into the lock file.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LOCK = "requirements.lock"
_WITH_CUDA = re.compile(r"torch|triton|(cuda|nvidia)-.*")


@dataclass(frozen=True)
class Pin:
    """A package: its ``entry`` in the lock file, and the roles that need it."""

    name: str
    version: str
    entry: str
    roles: frozenset[str]

    @property
    def with_cuda(self) -> bool:
        """Whether it is torch, or one of what torch's CUDA build needs."""
        return _WITH_CUDA.fullmatch(self.name) is not None


def read_lock(folder: Path) -> Iterator[Pin]:
    """The packages of the lock file in ``folder``.

    Raises:
        FileNotFoundError: there is none.
    """
    for entry in re.split(r"\n(?=\S)", (folder / LOCK).read_text(encoding="utf-8").strip()):
        name, version = entry.split(maxsplit=1)[0].split("==")
        yield Pin(name, version, entry, frozenset(re.findall(r"[\w-]+", "".join(re.findall(r"# for (.*)", entry)))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The part of requirements.lock that roles need.")
    parser.add_argument("roles", nargs="+", metavar="ROLE")
    parser.add_argument("--cuda", action="store_true", help="with torch and what its CUDA build needs")
    options = parser.parse_args()
    needed = [pin for pin in read_lock(Path()) if not pin.roles.isdisjoint(options.roles)]
    chosen = [pin for pin in needed if options.cuda or not pin.with_cuda]
    if not chosen:
        parser.error(f"{LOCK} has nothing for {' or '.join(options.roles)}")
    print("\n".join(pin.entry for pin in chosen))
