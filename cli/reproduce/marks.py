"""What is done, in the run's folder: ``RUN/steps/NAME.json`` for each step that was begun, ``finished`` once it is.

A step is done if its mark says so, its command line and the files it took from outside are the same as now, and its
products have the sizes they had. The mark has their SHA-256 too.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from cli.console import CommandError
from cli.reproduce.plan import Step
from toolformer.model_files.digests import file_digest
from training_jobs.runner.parts import write_json

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
        mark = self._read(self._mark(step))
        if mark is None or "finished" not in mark or (step.summary and mark["arguments"] != self._arguments(step)):
            return None
        sizes = {name: told["bytes"] for name, told in mark["products"].items()}
        there = {self._name(path): path.stat().st_size for path in step.products if path.is_file()}
        return mark if there == sizes else None

    def state(self, step: Step) -> State:
        """How far a step is."""
        if self.done(step):
            return "done"
        mark = self._read(self._mark(step))
        return "open" if mark is None or "finished" in mark else "begun"

    def seconds(self, step: Step) -> float:
        """What a step took until now, over all attempts."""
        mark = self.done(step)
        return float(mark["seconds"]) if mark else self._before(step)

    def check(self, step: Step) -> None:
        """Pass if what there is of a step was made with this command line and these files.

        Raises:
            CommandError: it was made with others; the message says which.
        """
        mark = self._read(self._mark(step))
        if mark is None or step.summary:
            return
        told = f"{self.run} holds a run of other settings: step {step.name} was done with"
        option = ""
        for old, new in zip_longest(mark["arguments"], self._arguments(step), fillvalue="nothing"):
            if old != new:
                was = " ".join(filter(None, (option, old)))
                raise CommandError(f"{told} {was}, not {new}; give the same settings, or another --out")
            option = old if old.startswith("--") else option
        now = self._inputs(step)
        if differ := next((name for name in now if mark["inputs"].get(name) != now[name]), None):
            raise CommandError(f"{told} another {differ}; give that one again, or another --out")

    def begin(self, step: Step) -> None:
        """Note that a step begins, or goes on."""
        self._mark(step).parent.mkdir(parents=True, exist_ok=True)
        self.log(step).parent.mkdir(parents=True, exist_ok=True)
        mark = {
            "step": step.name,
            "module": step.module,
            "arguments": self._arguments(step),
            "inputs": self._inputs(step),
            "began": time.time(),
            "seconds": 0.0 if step.summary else self._before(step),
        }
        self.log(step).touch()
        self._write(self._mark(step), mark)

    def end(self, step: Step, versions: Mapping[str, Any]) -> dict[str, Any]:
        """Note that a step is done; its mark.

        Raises:
            CommandError: a product is not there.
        """
        if missing := next((path for path in step.products if not path.is_file()), None):
            raise CommandError(f"step {step.name} ended well but did not write {missing}; its log: {self.log(step)}")
        mark = self._read(self._mark(step)) or {}
        mark |= {
            "products": {
                self._name(path): {"bytes": path.stat().st_size, "sha256": file_digest(path)} for path in step.products
            },
            "counts": step.counts(),
            "seconds": round(mark["seconds"] + time.time() - mark.pop("began"), 1),
            "finished": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "versions": dict(versions),
        }
        self._write(self._mark(step), mark)
        return mark

    def _before(self, step: Step) -> float:
        """Seconds of a step's earlier attempts. One that was killed ended, for all we know, with its last log line."""
        begun = self._read(self._mark(step))
        if begun is None or "finished" in begun:
            return 0.0
        ended = self.log(step).stat().st_mtime if self.log(step).is_file() else begun["began"]
        return float(begun["seconds"]) + max(0.0, ended - float(begun["began"]))

    def _mark(self, step: Step) -> Path:
        return self.run / "steps" / f"{step.name}.json"

    def _arguments(self, step: Step) -> list[str]:
        return [self._name(one) if isinstance(one, Path) else one for one in step.arguments]

    def _inputs(self, step: Step) -> dict[str, str]:
        try:
            return {path.name: file_digest(path) for path in step.inputs}
        except OSError as error:
            told = f"{error.filename}: cannot be read ({error.strerror}); step {step.name} needs it"
            raise CommandError(told) from error

    def _name(self, path: Path) -> str:
        """A path that stays the same where the run is moved; of files from outside the name."""
        return path.relative_to(self.run).as_posix() if path.is_relative_to(self.run) else path.name

    def _read(self, path: Path) -> dict[str, Any] | None:
        try:
            told = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise CommandError(f"{path}: is damaged ({error}); remove it") from error
        return told if isinstance(told, dict) else None

    def _write(self, path: Path, told: Mapping[str, Any]) -> None:
        write_json(path, told)
