"""Compiles ``step.c`` for this processor, once, and loads it."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_SOURCE: Final = Path(__file__).with_name("step.c")
_HEADER: Final = Path(__file__).with_name("team.h")
_COMPILE_SECONDS: Final = 120
_FLAGS: Final = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread", "-Wall", "-Wextra")
_FOR_THIS_PROCESSOR: Final = ("-march=native", "-mcpu=native")
"""What GCC and clang call it, by architecture; the first that the compiler takes is used."""


class Model(ctypes.Structure):
    """``step.c``'s ``model``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("layers", "width", "heads", "head_width", "rotated", "inner")),
        ("vocabulary", ctypes.c_long),
        ("epsilon", ctypes.c_float),
        *((name, ctypes.c_void_p) for name in ("embedding", "rotations", "weights")),
    )


class Cache(ctypes.Structure):
    """``step.c``'s ``cache``."""

    _fields_ = (
        ("tokens", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("layer_stride", "row_stride", "token_stride")),
    )


class Unavailable(Exception):  # noqa: N818 - a state, not a fault
    """There is no compiled step here; the message says why."""


@functools.cache
def load() -> ctypes.CDLL:
    """The library, compiled before or now (about two seconds). Its functions run without Python's lock.

    Raises:
        Unavailable: if there is no compiler, or it fails.
    """
    path = _compiled()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"{path} cannot be loaded: {error}; remove it") from error
    size, address = ctypes.c_long, ctypes.c_void_p
    library.hire.argtypes = (ctypes.c_int,)
    library.hire.restype = ctypes.c_int
    library.scratch_size.argtypes = (address, size, size)
    library.scratch_size.restype = size
    library.step.argtypes = (address, address, size, address, address, address, size, address, size, address, address)
    library.step.restype = None
    return library


def short_calls() -> ctypes.PyDLL | None:
    """The library's functions that take microseconds, which keep Python's lock: to let it go would take longer.
    ``None`` if nothing has loaded the library."""
    return _short_calls() if load.cache_info().currsize else None


@functools.cache
def _short_calls() -> ctypes.PyDLL:
    library = ctypes.PyDLL(load()._name)
    size, address = ctypes.c_long, ctypes.c_void_p
    library.most_likely.argtypes = (address, size, size, size, address)
    library.most_likely.restype = None
    library.rank.argtypes = (address, size, size, size, address, size, address, address)
    library.rank.restype = None
    library.rouse.argtypes = ()
    library.rouse.restype = None
    return library


def _compiled() -> Path:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise Unavailable("no C compiler (cc, gcc, clang) is installed")
    # A home directory may be shared by machines of different processors.
    made_of = (_SOURCE.read_bytes(), _HEADER.read_bytes(), repr(_FLAGS).encode(), compiler.encode(), _processor())
    name = f"step-{hashlib.sha256(b'|'.join(made_of)).hexdigest()[:16]}.so"
    directory = _cache_directory()
    target = directory / name
    if not target.exists():
        try:
            with tempfile.TemporaryDirectory(dir=directory) as scratch:
                partial = Path(scratch) / name
                _compile(compiler, partial)
                partial.replace(target)
        except OSError as error:
            raise Unavailable(f"compiled code cannot be kept in {directory}: {error}; set XDG_CACHE_HOME") from error
    return target


def _compile(compiler: str, target: Path) -> None:
    said = ""
    for tuning in (*_FOR_THIS_PROCESSOR, "-O3"):
        command = [compiler, *_FLAGS, tuning, "-o", str(target), str(_SOURCE), "-lm"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"the C compiler {compiler} does not work: {error}") from error
        if run.returncode == 0:
            return
        said = run.stderr.strip()
    raise Unavailable(f"the C compiler {compiler} failed: {said[-500:]}")


def _cache_directory() -> Path:
    """Where compiled code is kept: only this user may write there, for it will be run."""
    try:
        base = os.environ.get("XDG_CACHE_HOME")
        directory = (Path(base) if base else Path.home() / ".cache") / "toolformer"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # a user need not have a home
        raise Unavailable(f"compiled code cannot be kept: {error}; set XDG_CACHE_HOME") from error
    return directory


def _processor() -> bytes:
    try:
        lines = Path("/proc/cpuinfo").read_bytes().split(b"\n")
    except OSError:
        lines = []
    told = [line for line in lines if line.startswith((b"model name", b"flags", b"Features"))]
    return platform.machine().encode() + b"".join(sorted(set(told)))
