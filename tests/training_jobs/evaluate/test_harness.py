"""lm-evaluation-harness asks a served model through its completions client, with the project's task files."""

import asyncio
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from tests.inference_gateway.http_harness import gateway
from tests.training_jobs.evaluate.published import write_all
from tests.training_jobs.evaluate.stand_in import perfect, served
from training_jobs.evaluate.evaluation_harness.tasks import DATA, PROMPTS, examples, judge
from training_jobs.evaluate.suites import SUITES

FOLDER = Path(__file__).parents[3] / "training_jobs" / "evaluate" / "evaluation_harness"
TASKS = sorted(path for path in FOLDER.glob("*.yaml") if not path.name.startswith("_"))
ALL_TOOLS = ["Calculator", "Calendar", "WikiSearch", "QA", "MT"]

MODEL = Path(__file__).parents[3] / "models" / "gptj-tools"

needs_harness = pytest.mark.skipif(
    importlib.util.find_spec("lm_eval") is None,
    reason="lm-evaluation-harness is not installed (the group evaluation-harness)",
)


@pytest.mark.parametrize("path", TASKS, ids=lambda path: path.stem)
def test_a_task_file_names_a_suite_and_bars_its_tool(path: Path) -> None:
    text = path.read_text()
    found = re.search(r"^  suite: (\S+)$", text, re.MULTILINE)
    assert found
    suite = SUITES[found[1]]
    assert re.search(r"^task: (\S+)$", text, re.MULTILINE)[1] == f"toolformer_{path.stem}"  # type: ignore[index]
    listed = re.search(r"^  tools: \[(.*)\]", text, re.MULTILINE)
    tools = listed[1].split(", ") if listed else ALL_TOOLS
    assert tools == [tool for tool in ALL_TOOLS if tool not in suite.barred]


def test_examples_are_the_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DATA, str(write_all(tmp_path)))
    [doc] = examples("squad")["test"]
    assert doc["prompt"].startswith("Please complete the following text")
    assert judge(doc, [" green."]) == {"right": 1.0}
    assert judge(doc, [" blue."]) == {"right": 0.0}
    monkeypatch.setenv(PROMPTS, "bare")
    assert examples("squad")["test"][0]["prompt"] == "The gate is painted"
    monkeypatch.setenv(PROMPTS, "none")
    with pytest.raises(ValueError, match="TOOLFORMER_EVALUATION_PROMPTS must be paper or bare"):
        examples("squad")
    monkeypatch.delenv(PROMPTS)
    with pytest.raises(ValueError, match="dateset: its examples have dates, which the harness cannot send"):
        examples("dateset")


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_harness
def test_the_harness_gives_a_perfect_model_all_points(tmp_path: Path) -> None:
    data = write_all(tmp_path / "data")
    suite = SUITES["svamp"]
    with served(perfect(suite, suite.load(data, count=1, seed=0).examples)) as (url, bodies):
        asked = f"model=stand-in,base_url={url}/v1/completions,tokenizer_backend=None,tokenized_requests=False"
        command = [
            sys.executable, "-m", "lm_eval", "--model", "local-completions", "--model_args", asked,
            "--include_path", str(FOLDER), "--tasks", "toolformer_svamp", "--output_path", str(tmp_path / "out"),
        ]  # fmt: skip
        environment = {**os.environ, DATA: str(data), "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    [results] = (tmp_path / "out").rglob("results_*.json")
    content: dict[str, Any] = json.loads(results.read_text())
    assert content["results"]["toolformer_svamp"]["right,none"] == 1.0
    assert {body["prompt"] for body in bodies} == {doc["prompt"] for doc in _docs(data)}
    assert all(body["tools"] == ALL_TOOLS and body["show_calls"] is False for body in bodies)


@pytest.mark.slow
@pytest.mark.timeout(300)
@needs_harness
async def test_log_likelihoods_are_those_of_the_harness_own_model() -> None:
    """Behind many of these contexts or continuations the model would begin a call."""
    contexts = ["The capital of Peru is", "2 + 2 =", "Today is", "See [1] and", "The sum of 5 and 4 is", "Hello"]
    continuations = [" Lima", " 4", " Friday", " [2]", " 9.", " café", " What is", " é"]
    asked = [(context, continuation) for context in contexts for continuation in continuations]
    limits = EngineLimits(max_model_len=256, max_sequences=8)
    async with gateway(make=lambda: LocalBackend.load(MODEL, limits=limits)) as served:
        url = f"{served.url}/v1/completions"
        expected, found = await asyncio.to_thread(_log_likelihoods, url, asked)
    assert [greedy for _, greedy in found] == [greedy for _, greedy in expected]
    assert [value for value, _ in found] == pytest.approx([value for value, _ in expected], abs=1e-3)


def _log_likelihoods(url: str, asked: list[tuple[str, str]]) -> tuple[list[tuple[float, bool]], ...]:
    """What the harness finds by its model in this process, and by asking ``url``."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    from lm_eval.models.openai_completions import LocalCompletionsAPI

    instances = [Instance("loglikelihood", {}, pair, number) for number, pair in enumerate(asked)]
    here = HFLM(pretrained=str(MODEL), device="cpu", dtype="float32", batch_size=8)
    there = LocalCompletionsAPI(model=MODEL.name, base_url=url, tokenizer=str(MODEL), num_concurrent=1, max_length=256)
    return tuple(model.loglikelihood(instances) for model in (here, there))


def _docs(data: Path) -> list[dict[str, Any]]:
    os.environ[DATA] = str(data)
    try:
        return examples("svamp")["test"]
    finally:
        del os.environ[DATA]
