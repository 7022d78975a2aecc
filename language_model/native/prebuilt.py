"""The library compiled beforehand, for machines without a compiler, such as a container.

    python -m language_model.native.prebuilt DIRECTORY

makes one for each level of x86-64 (or one, on another architecture) and needs nothing but a C compiler and Python.
Where ``TOOLFORMER_STEP_LIBRARIES`` names such a directory, the best one for this processor is used. One that
was made of other sources is never taken."""

from __future__ import annotations

import logging
import os
import platform
import sys
from pathlib import Path
from typing import Final

from language_model.native.compiling import Unavailable, compile_step, digest, find_compiler

log = logging.getLogger(__name__)

VARIABLE: Final = "TOOLFORMER_STEP_LIBRARIES"

_LEVELS: Final = {
    "x86-64-v4-vnni": {"avx512_vnni"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
}
"""Levels of the x86-64 psABI, and one with products of whole numbers; the best first, and what a processor must have
beyond the next (in Linux's words)."""

_ANY: Final = "any"
"""Code for every processor of the architecture."""


def find() -> Path | None:
    """The library to use, if a directory of them is named and holds one of these sources for this processor."""
    directory = os.environ.get(VARIABLE)
    if not directory:
        return None
    for level in fitting(platform.machine(), processor_flags()):
        if (path := Path(directory) / _name(level)).is_file():
            return path
    log.warning("%s: %s holds no library of this version for this processor", VARIABLE, directory)
    return None


def build(directory: Path) -> list[Path]:
    """Make the libraries for this machine's architecture, the best one first.

    Raises:
        Unavailable: if there is no compiler, or it fails.
    """
    directory.mkdir(parents=True, exist_ok=True)
    compiler, made = find_compiler(), []
    for level in [*(_LEVELS if platform.machine() == "x86_64" else ()), _ANY]:
        made.append(directory / _name(level))
        compile_step(compiler, made[-1], [] if level == _ANY else _tuning(level))
    return made


def _tuning(level: str) -> list[str]:
    base = level.removesuffix("-vnni")
    return [f"-march={base}", *(["-mavx512vnni"] if level != base else [])]


def fitting(machine: str, flags: set[str]) -> list[str]:
    """The levels that a processor runs, the best first."""
    needed: set[str] = set()
    levels = [_ANY]
    for level, more in reversed(_LEVELS.items()):
        needed |= more
        if machine == "x86_64" and needed <= flags:
            levels.insert(0, level)
    return levels


def processor_flags() -> set[str]:
    """What the processor can do, as Linux lists it; empty where that is not available."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next(
        (set(line.partition(":")[2].split()) for line in lines if line.startswith(("flags", "Features"))), set()
    )


def _name(level: str) -> str:
    return f"step-{level}-{digest(level.encode(), platform.machine().encode())}.so"


def main() -> None:
    """Make the libraries in the directory that is named."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m language_model.native.prebuilt DIRECTORY")
    try:
        for path in build(Path(sys.argv[1])):
            print(path)  # noqa: T201
    except (Unavailable, OSError) as why:
        sys.exit(f"language_model.native.prebuilt: {why}")


if __name__ == "__main__":
    main()
