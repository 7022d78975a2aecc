"""``manifest.json``: what a run was made with, what each step counted and wrote, and how long it took."""

from __future__ import annotations

import contextlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from cli.checkout import CHECKOUT
from cli.components import usable_cpus
from cli.doctor import project_version
from cli.reproduce.marks import Marks
from cli.reproduce.plan import Step
from training_jobs.runner.parts import write_json

MANIFEST: Final = "manifest.json"
_PACKAGES: Final = ("torch", "transformers", "tokenizers")


def versions() -> dict[str, Any]:
    """Of Python, of the packages that the figures depend on, and of the project: its commit and whether the tree was
    ``dirty`` (``None`` where it is no git checkout)."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "toolformer": project_version(),
        "commit": commit,
        "dirty": None if changed is None else bool(changed),
    }


def write_manifest(run: Path, steps: Sequence[Step], about: Mapping[str, Any]) -> None:
    """Write the manifest of what is done of ``steps``, all those of a run, under what is to be said ``about`` it."""
    marks = Marks(run)
    done = {step.name: mark for step in steps if (mark := marks.done(step))}
    now = versions()
    told = {
        **about,
        "versions": now,
        "processor": _processor(),
        "cpus": usable_cpus(),
        "complete": len(done) == len(steps),
        "seconds": round(sum(mark["seconds"] for mark in done.values()), 1),
        # A step of another session may have been made with others.
        "steps": {
            step: {key: value for key, value in mark.items() if key != "versions" or value != now}
            for step, mark in done.items()
        },
    }
    write_json(run / MANIFEST, told)


def _git(*arguments: str) -> str | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        found = subprocess.run(
            ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=30
        )  # fmt: skip
        return found.stdout.strip()
    return None


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
