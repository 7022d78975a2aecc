"""What is done, in the run's folder: ``RUN/steps/NAME.json`` for each step that was begun, ``finished`` once it is; and
``RUN/manifest.json``: what the run was made with, what each step counted and wrote, and how long it took.

A step is done if its mark says so, its command line and the files it took from outside are the same as now, and its
products have the sizes they had. The mark has their SHA-256 too.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, Literal

from cli.checkout import CHECKOUT
from cli.components import usable_cpus
from cli.console import CommandError
from cli.doctor import project_version
from cli.reproduce.plan import Step
from toolformer.model_files.digests import file_digest
from training_jobs.runner.parts import write_json

MANIFEST: Final = "manifest.json"
State = Literal["done", "begun", "open"]


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of the run in ``run``."""

    run: Path

    def log(self, step: Step) -> Path:
        """The file that a step's output is kept in."""
        return self.run / "logs" / f"{step.name}.log"

    def done(self, step: Step) -> dict[str, Any] | None:
        """The mark of a step that is done: arguments, digests, counts, seconds, versions; else ``None``."""
        mark = self._read(step)
        if "finished" not in mark or (step.summary and mark["arguments"] != self._arguments(step)):
            return None
        sizes = {name: product["bytes"] for name, product in mark["products"].items()}
        there = {self._name(path): path.stat().st_size for path in step.products if path.is_file()}
        return mark if there == sizes else None

    def state(self, step: Step) -> State:
        """How far a step is."""
        if self.done(step):
            return "done"
        mark = self._read(step)
        return "begun" if mark and "finished" not in mark else "open"

    def seconds(self, step: Step) -> float:
        """What a step took until now, over all attempts. One that was killed ended, for all we know, with its last log
        line."""
        mark = self._read(step)
        if not mark or "finished" in mark:
            return float(mark["seconds"]) if self.done(step) else 0.0
        ended = self.log(step).stat().st_mtime if self.log(step).is_file() else mark["began"]
        return float(mark["seconds"]) + max(0.0, ended - float(mark["began"]))

    def check(self, step: Step) -> None:
        """Pass if what there is of a step was made with this command line and these files.

        Raises:
            CommandError: it was made with others; the message says which.
        """
        mark = self._read(step)
        if not mark or step.summary:
            return
        begun = "finished" not in mark
        other = f"{self.run} holds a run of other settings: step {step.name} was {'begun' if begun else 'done'} with"
        out = f"another --out{f', or remove {self._mark(step)} to begin the step anew' if begun else ''}"
        option = ""
        for old, new in zip_longest(mark["arguments"], self._arguments(step), fillvalue="nothing"):
            if old != new:
                was = " ".join(filter(None, (option, old)))
                raise CommandError(f"{other} {was}, not {new}; give the same settings, or {out}")
            option = old if old.startswith("--") else option
        now = self._inputs(step)
        if differ := next((name for name in now if mark["inputs"].get(name) != now[name]), None):
            raise CommandError(f"{other} another {differ}; give that one again, or {out}")

    def begin(self, step: Step) -> None:
        """Note that a step begins, or goes on."""
        mark = {
            "step": step.name,
            "module": step.module,
            "arguments": self._arguments(step),
            "inputs": self._inputs(step),
            "began": time.time(),
            "seconds": 0.0 if step.summary else self.seconds(step),
        }
        for path in (self._mark(step), self.log(step)):
            path.parent.mkdir(parents=True, exist_ok=True)
        self.log(step).touch()
        write_json(self._mark(step), mark)

    def end(self, step: Step) -> None:
        """Note that a step is done.

        Raises:
            CommandError: a product is not there.
        """
        if missing := next((path for path in step.products if not path.is_file()), None):
            raise CommandError(f"step {step.name} ended well but did not write {missing}; its log: {self.log(step)}")
        mark = self._read(step)
        mark |= {
            "products": {
                self._name(path): {"bytes": path.stat().st_size, "sha256": file_digest(path)} for path in step.products
            },
            "counts": step.counts(),
            "seconds": round(mark["seconds"] + time.time() - mark.pop("began"), 1),
            "finished": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "versions": _versions(),
        }
        write_json(self._mark(step), mark)

    def write_manifest(self, steps: Sequence[Step], about: Mapping[str, Any]) -> None:
        """Write what is done of ``steps``, all those of the run, under what is to be said ``about`` it."""
        done = {step.name: mark for step in steps if (mark := self.done(step))}
        now = _versions()
        manifest = {
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
        write_json(self.run / MANIFEST, manifest)

    def _mark(self, step: Step) -> Path:
        return self.run / "steps" / f"{step.name}.json"

    def _arguments(self, step: Step) -> list[str]:
        return [self._name(one) if isinstance(one, Path) else one for one in step.arguments]

    def _inputs(self, step: Step) -> dict[str, str]:
        try:
            return {path.name: file_digest(path) for path in step.inputs}
        except OSError as error:
            why = f"{error.filename}: cannot be read ({error.strerror}); step {step.name} needs it"
            raise CommandError(why) from error

    def _name(self, path: Path) -> str:
        """A path that stays the same where the run is moved; of files from outside the name."""
        return path.relative_to(self.run).as_posix() if path.is_relative_to(self.run) else path.name

    def _read(self, step: Step) -> dict[str, Any]:
        """The mark of a step; empty if it was never begun."""
        path = self._mark(step)
        try:
            mark = json.loads(path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise CommandError(f"{path}: is damaged ({error}); remove it") from error
        return mark if isinstance(mark, dict) else {}


def _versions() -> dict[str, Any]:
    """Of Python, of the packages that the figures depend on, and of the project: its commit and whether the tree was
    ``dirty`` (``None`` where it is no git checkout)."""
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no") if commit else None
    return {
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in ("torch", "transformers", "tokenizers")},
        "toolformer": project_version(),
        "commit": commit,
        "dirty": None if changed is None else bool(changed),
    }


def _git(*arguments: str) -> str | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["git", *arguments]
        found = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True, timeout=30)
        return found.stdout.strip()
    return None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
