"""The stages in containers: what they may write, and that the corpus is made the way it is made without one."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.containers.engine import ROOT, Stack, docker

pytestmark = pytest.mark.timeout(3600)
DIGESTS = """
import hashlib, pathlib
for file in sorted(pathlib.Path('/runs/texts').iterdir()):
    print(file.name, hashlib.sha256(file.read_bytes()).hexdigest())
"""


def test_a_job_has_the_rights_of_the_file(stack: Stack) -> None:
    words = ["--profile", "jobs", "run", "--rm", "--no-deps", "-T", "--entrypoint", "python", "annotate", "-c"]
    code = "import os; print(os.getuid(), os.access('/app', os.W_OK), os.access('/runs', os.W_OK))"
    assert stack.compose(*words, code) == "10001 False True"


def test_texts_are_the_same_bytes_as_without_a_container(stack: Stack, tmp_path: Path) -> None:
    words = ["generate", "--documents", "12", "--seed", "0", "--out"]
    run = ["--profile", "jobs", "run", "--rm", "--no-deps", "-T", "--entrypoint", "python", "annotate", "-m"]
    stack.compose(*run, "training_jobs.corpus", *words, "/runs/texts", seconds=600)
    command = [sys.executable, "-m", "training_jobs.corpus", *words, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=600)

    volume = f"{stack.project}_runs:/runs:ro"
    there = docker("run", "--rm", "-v", volume, "--entrypoint", "python", "toolformer-jobs", "-c", DIGESTS)
    here = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in tmp_path.iterdir()}
    assert len(here) > 1
    assert dict(line.split() for line in there.splitlines()) == here
