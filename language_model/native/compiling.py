"""Compiling ``step.c``."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("step.c")
_HEADERS: Final = (Path(__file__).with_name("products.h"), Path(__file__).with_name("team.h"))
_COMPILE_SECONDS: Final = 120
_FLAGS: Final = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra")


class Unavailable(Exception):  # noqa: N818 - a state, not a fault
    """There is no compiled step here; the message says why."""


def find_compiler() -> str:
    """The C compiler: ``CC``, or the first of those that are usual.

    Raises:
        Unavailable: if there is none.
    """
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Unavailable("no C compiler (cc, gcc, clang) is installed")
    return compiler


def digest(*conditions: bytes) -> str:
    """A short name for what comes of these sources under ``conditions``."""
    made_of = (_SOURCE.read_bytes(), *(header.read_bytes() for header in _HEADERS), repr(_FLAGS).encode(), *conditions)
    return hashlib.sha256(b"|".join(made_of)).hexdigest()[:16]


def compile_step(compiler: str, target: Path, *tunings: Sequence[str]) -> None:
    """Make the library ``target`` with the first of ``tunings``, each some flags, that the compiler takes.

    Raises:
        Unavailable: if it takes none, or does not work.
    """
    said = ""
    for tuning in tunings:
        command = [compiler, *_FLAGS, *tuning, "-o", str(target), str(_SOURCE), "-lm"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"the C compiler {compiler} does not work: {error}") from error
        if run.returncode == 0:
            return
        said = run.stderr.strip()
    raise Unavailable(f"the C compiler {compiler} failed: {said[-500:]}")
