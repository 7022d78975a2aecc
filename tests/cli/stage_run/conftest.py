"""docker and kubectl as programs of the tests' own; tests/containers run the real engine."""

import contextlib
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.stage_run import stand_in
from tests.cli.stage_run.stand_in import wait_for


class Programs:
    """What docker and kubectl will do, and how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._kubectl = folder, shutil.which("kubectl")
        self.path = folder / "calls.jsonl"
        for name in ("docker", "kubectl"):
            program = folder / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {stand_in.__file__} {folder} {name} "$@"\n')
            program.chmod(0o755)
        self.plan()

    def plan(self, **plan: Any) -> None:
        """See `stand_in`."""
        (self.folder / "plan.json").write_text(json.dumps({"kubectl": self._kubectl, **plan}))

    def calls(self, *words: str) -> list[dict[str, Any]]:
        """Every call with all of ``words``: its ``words`` and what it was ``given``."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return [call for call in map(json.loads, lines) if set(words) <= set(call["words"])]

    @contextlib.contextmanager
    def pressed(self, number: signal.Signals, *after: str) -> Iterator[None]:
        """Send this process a signal when a program was called with each of these words."""

        def press() -> None:
            for word in after:
                wait_for(lambda word=word: self.path.exists() and f'"{word}"' in self.path.read_text())
                os.kill(os.getpid(), number)

        pressing = threading.Thread(target=press)
        pressing.start()
        yield
        pressing.join()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    found = Programs(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return found
