"""The stages in their containers give the bytes that they give without one."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.containers.engine import ROOT, Stack, docker, inspect
from tests.deploy.code_facts import servers

pytestmark = pytest.mark.timeout(3600)
DOCUMENTS = int(os.environ.get("CONTAINER_TEST_DOCUMENTS", "12"))
STAGES = ["annotate", "execute", "filter", "merge"]
MODEL = "models/gptj-tools"
TOOLS = {
    "CALCULATOR": "calculator",
    "CALENDAR": "calendar",
    "WIKISEARCH": "wiki-search",
    "QA": "question-answering",
    "MT": "translation",
}


@pytest.fixture(scope="module")
def in_containers(stack: Stack) -> dict[str, str]:
    """Digests of what the stages wrote, each run in a container of its own."""
    stack = Stack(stack.project, stack.port, stack.files, {"DOCUMENTS": str(DOCUMENTS)})
    for stage in ["corpus", *STAGES]:
        stack.compose("--profile", "jobs", "run", "--rm", "--no-deps", "-T", stage, seconds=1800)
    volume = f"{stack.project}_runs"
    listing = docker(
        "run", "--rm", "-v", f"{volume}:/runs:ro", "--entrypoint", "python", "toolformer-jobs", "-c", DIGESTS
    )
    return dict(line.split()[::-1] for line in listing.splitlines())


DIGESTS = """
import hashlib, pathlib
for file in sorted(pathlib.Path('/runs/run').rglob('*.jsonl')):
    if not file.name.endswith('.log.jsonl'):
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file.relative_to('/runs/run'))
"""


def test_the_stages_give_what_they_give_without_a_container(
    stack: Stack, in_containers: dict[str, str], tmp_path: Path
) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOOLFORMER_CACHE_SIZE": "0"}
    for tool, name in TOOLS.items():
        [network] = inspect(stack.container(name))["NetworkSettings"]["Networks"].values()
        environment[f"TOOLFORMER_TOOL_{tool}_URL"] = f"http://{network['IPAddress']}:{servers()[name].port}"

    def stage(*words: str) -> None:
        command = [sys.executable, "-m", *words]
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]

    run = tmp_path / "run"
    stage(
        "training_jobs.corpus",
        "generate",
        "--out",
        str(tmp_path / "texts"),
        "--documents",
        str(DOCUMENTS),
        "--seed",
        "0",
    )
    texts = sorted(map(str, (tmp_path / "texts").glob("*.json.gz")))
    options = ["--language-id", "models/translation-small/lid.ftz", "--tokenizer", MODEL]
    stage("training_jobs.corpus", "select", *texts, "--out", str(run / "corpus"), *options)
    stage("training_jobs.annotate", "--run", str(run), "--model", MODEL)
    stage("training_jobs.execute", "--run", str(run))
    stage("training_jobs.filter", "--run", str(run), "--model", MODEL)
    stage("training_jobs.merge", "--run", str(run))

    local = {
        str(file.relative_to(run)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in run.rglob("*.jsonl")
        if not file.name.endswith(".log.jsonl")
    }
    assert {"annotate", "execute", "filter", "merge"} <= {name.split("/")[0] for name in local}
    assert in_containers == local


def test_a_job_has_the_rights_of_the_file(stack: Stack) -> None:
    words = ["--profile", "jobs", "run", "--rm", "--no-deps", "-T", "--entrypoint", "python", "annotate", "-c"]
    code = "import os; print(os.getuid(), os.access('/app', os.W_OK), os.access('/runs', os.W_OK))"
    assert stack.compose(*words, code) == "10001 False True"
