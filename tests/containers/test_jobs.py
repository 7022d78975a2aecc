"""The stages in containers: what they may write, and that they write the very bytes that they write without one."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cli.components import SERVICES
from cli.stack import services_up
from tests.containers.engine import ROOT, Stack, docker

pytestmark = pytest.mark.timeout(3600)
STAGES = ["corpus", "annotate", "execute", "filter", "merge"]
FEW = {"DOCUMENTS": "16", "HOLD_OUT": "2"}
"""So few that it is soon done, enough that every tool has a text."""
MORE = {
    "DOCUMENTS": "200", "HOLD_OUT": "20", "WORKERS": "2",
    "FINETUNE_OPTIONS": "--threads 2 --steps 4 --batch 8 --rate 3e-4 --evaluate-every 2",
    "EVALUATE_OPTIONS": "--count 2",
}  # fmt: skip
"""Enough that the filter keeps calls of most tools."""
DIGESTS = """
import hashlib, pathlib, sys
for folder in ('texts', 'run'):
    for file in sorted((pathlib.Path(sys.argv[1]) / folder).rglob('*')):
        # A log of chunks has seconds in it, and differs at each run.
        if file.is_file() and not file.name.endswith('.log.jsonl'):
            print(file.relative_to(sys.argv[1]), hashlib.sha256(file.read_bytes()).hexdigest())
"""


@pytest.fixture
def services_here(images: Stack, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The five tool services without containers, on the search image's own index; variables with their addresses."""
    container = docker("create", "toolformer-wiki-search")
    folder = tmp_path / "data" / "wiki_search"
    folder.mkdir(parents=True)
    try:
        docker("cp", "-q", f"{container}:/index", str(folder / "index"))
    finally:
        docker("rm", container)
    ports = {f"TOOLFORMER_{service.upper()}_PORT": "0" for service in SERVICES.values()}
    with services_up(None, {**os.environ, **ports, "TOOLFORMER_DATA_DIR": str(tmp_path / "data")}) as addresses:
        yield addresses


def command_here(stack: Stack, stage: str, runs: Path) -> list[str]:
    """What the compose file says that a stage runs, to be run here, with ``runs`` in the volume's place."""
    config = stack.compose("--profile", "jobs", "config", "--format", "json").replace("$$", "$")
    service = json.loads(config)["services"][stage]
    words = [word.replace("/runs", str(runs)).replace("python ", f"{sys.executable} ") for word in service["command"]]
    return [*(service["entrypoint"] or [sys.executable, "-m"]), *words]


def test_a_job_has_the_rights_of_the_file(stack: Stack) -> None:
    words = ["--profile", "jobs", "run", "--rm", "--no-deps", "-T", "--entrypoint", "python", "annotate", "-c"]
    code = "import os; print(os.getuid(), os.access('/app', os.W_OK), os.access('/runs', os.W_OK))"
    assert stack.compose(*words, code) == "10001 False True"


def test_from_texts_to_calls_it_is_the_same_bytes_as_without_a_container(
    stack: Stack, services_here: dict[str, str], tmp_path: Path
) -> None:
    few = replace(stack, environment=FEW)
    in_runs(stack, "rm -rf /runs/*")
    try:
        few.compose("--profile", "jobs", "up", "--no-build", "merge", seconds=1800)
        words = ["run", "--rm", "-v", f"{stack.project}_runs:/runs:ro", "--entrypoint", "python", "toolformer-jobs"]
        there = docker(*words, "-c", DIGESTS, "/runs")
    finally:
        few.compose("--profile", "jobs", "rm", "--stop", "--force", *STAGES)

    environment = {**os.environ, **services_here, "OMP_NUM_THREADS": "1"}
    for stage in STAGES:
        command = command_here(few, stage, tmp_path)
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800, check=False
        )
        assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "run/merge/summary.json").read_text())
    assert summary["texts"] > 0
    assert {tool for tool, counts in summary["tools"].items() if counts["candidates"]} == set(SERVICES)
    here = subprocess.run([sys.executable, "-c", DIGESTS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert there.splitlines() == here.stdout.splitlines()


def test_from_texts_to_a_toolformer_that_is_evaluated(stack: Stack) -> None:
    """Every stage with the file's own commands and some steps of finetuning; then the gateway serves the result."""
    making = replace(stack, environment=MORE)
    serving = replace(stack, environment={**MORE, "TOOLFORMER_MODEL": "/runs/toolformer/model"})
    in_runs(stack, "rm -rf /runs/*")
    try:
        making.compose("--profile", "jobs", "up", "--no-build", "finetune", seconds=1800)
        ended = making.compose("--profile", "jobs", "ps", "-a", "--format", "{{.Service}} {{.ExitCode}}").splitlines()
        assert {f"{stage} 0" for stage in [*STAGES, "finetune"]} <= set(ended)
        merged = json.loads(in_runs(stack, "cat /runs/run/merge/summary.json"))["tools"]
        assert sum(merged[tool]["calls of it in C*"] > 0 for tool in SERVICES) > 2, merged
        assert len(in_runs(stack, "cat /runs/run/corpus/held_out.jsonl").splitlines()) == int(MORE["HOLD_OUT"])
        assert '"step": 4' in in_runs(stack, "cat /runs/toolformer/curve.jsonl")

        serving.compose("up", "--no-build", "--no-deps", "--wait", "gateway", seconds=300)
        served = httpx.get(f"{stack.url}/v1/models", timeout=60).json()["data"][0]["id"]
        assert served == "model", "the folder's name"
        serving.compose("--profile", "jobs", "run", "--rm", "--no-deps", "-T", "evaluate", seconds=900)
        results = json.loads(in_runs(stack, "cat /runs/evaluation/results.json"))
        assert results["label"] == served
        assert {score["suite"] for score in results["scores"]}
    finally:
        making.compose("--profile", "jobs", "rm", "--stop", "--force", *STAGES, "finetune")
        stack.compose("up", "--no-build", "--no-deps", "--wait", "gateway", seconds=300)


def in_runs(stack: Stack, command: str) -> str:
    """What a shell prints that has the stages' volume."""
    words = ["run", "--rm", "-v", f"{stack.project}_runs:/runs", "--entrypoint", "sh", "toolformer-jobs", "-c"]
    return docker(*words, command)
