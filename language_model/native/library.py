"""Loads the compiled ``step.c``: one made beforehand, or one that is compiled for this processor, once."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import stat
import tempfile
from pathlib import Path
from typing import Final

from language_model.native import prebuilt
from language_model.native.compiling import Unavailable as Unavailable
from language_model.native.compiling import compile_step, digest, find_compiler

_FOR_THIS_PROCESSOR: Final = ("-march=native", "-mcpu=native")
"""What GCC and clang call it, by architecture; the first that the compiler takes is used."""


class MatrixStruct(ctypes.Structure):
    """``products.h``'s ``matrix``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("kind", "depth", "taken", "width")),
        *((name, ctypes.c_void_p) for name in ("panels", "scales", "bias")),
    )


class LayerStruct(ctypes.Structure):
    """``step.c``'s ``layer``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("scale", "shift")),
        *((name, MatrixStruct) for name in ("into", "out")),
    )


class ModelStruct(ctypes.Structure):
    """``step.c``'s ``model``."""

    _fields_ = (
        *((name, ctypes.c_long) for name in ("layers", "width", "heads", "head_width", "rotated", "inner")),
        ("vocabulary", ctypes.c_long),
        ("epsilon", ctypes.c_float),
        ("embedding_kind", ctypes.c_long),
        *((name, ctypes.c_void_p) for name in ("embedding", "rotations", "layers_of")),
        ("head", LayerStruct),
    )


class CacheStruct(ctypes.Structure):
    """``step.c``'s ``cache``."""

    _fields_ = (
        ("kind", ctypes.c_long),
        ("tokens", ctypes.c_void_p),
        *((name, ctypes.c_long) for name in ("layer_stride", "row_stride", "token_stride")),
    )


@functools.cache
def load() -> ctypes.CDLL:
    """The library, compiled before or now (two seconds). Its functions run without Python's lock.

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
    library.lone_product.argtypes = (address, size, address, address, address)
    library.lone_product.restype = None
    library.product_size.argtypes = (address,)
    library.product_size.restype = size
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
    if (ready := prebuilt.find()) is not None:
        for path in (ready.parent, ready):
            _refuse_shared(path)
        return ready
    compiler = find_compiler()
    # A home directory may be shared by machines of different processors.
    name = f"step-{digest(compiler.encode(), _processor())}.so"
    directory = _cache_directory()
    target = directory / name
    _refuse_shared(directory)
    if target.exists():
        _refuse_shared(target)
    else:
        try:
            with tempfile.TemporaryDirectory(dir=directory) as scratch:
                partial = Path(scratch) / name
                compile_step(compiler, partial, *([flag] for flag in _FOR_THIS_PROCESSOR), [])
                partial.chmod(0o700)
                partial.replace(target)
        except OSError as error:
            raise Unavailable(f"compiled code cannot be kept in {directory}: {error}; set XDG_CACHE_HOME") from error
    return target


def _cache_directory() -> Path:
    """Where compiled code is kept; made for this user alone."""
    try:
        base = os.environ.get("XDG_CACHE_HOME")
        directory = (Path(base) if base else Path.home() / ".cache") / "toolformer"
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:  # a user need not have a home
        raise Unavailable(f"compiled code cannot be kept: {error}; set XDG_CACHE_HOME") from error
    return directory


def _refuse_shared(path: Path) -> None:
    """Code in a file is run as this user: nobody but this user and root may be able to write it.

    Raises:
        Unavailable: if the owner is another user, or others have the right to write.
    """
    try:
        found = path.stat()
    except OSError as error:
        raise Unavailable(f"compiled code cannot be read: {error}; set XDG_CACHE_HOME") from error
    remedy = "compiled code from there would be run as you: correct that, or set XDG_CACHE_HOME to a folder of your own"
    if found.st_uid not in (0, os.geteuid()):
        raise Unavailable(f"{path} belongs to another user (id {found.st_uid}); {remedy}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unavailable(f"{path} may be written by others ({stat.filemode(found.st_mode)}); {remedy}")


def _processor() -> bytes:
    try:
        lines = Path("/proc/cpuinfo").read_bytes().split(b"\n")
    except OSError:
        lines = []
    features = [line for line in lines if line.startswith((b"model name", b"flags", b"Features"))]
    return platform.machine().encode() + b"".join(sorted(set(features)))
