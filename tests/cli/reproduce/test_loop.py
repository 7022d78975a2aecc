"""The whole loop, tiny, with real services, models and gateways; killed in the middle."""

import hashlib
import json
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open

from tests.cli.command import descendants, gone, is_listening, toolformer
from tests.training_jobs.runner.tiny_run import write_model
from tests.training_jobs.servers import tool_services
from toolformer.tools import ToolRegistry

_OFF = "".join(f"[{name}]\nenabled = false\n" for name in ("Calendar", "WikiSearch", "QA", "MT"))
_SHORT_PROMPT = """
[Calculator]
task = 'Put calls, "[Calculator(1)]", into a text.'
demonstrations = [{ input = "One is 1.", output = "One is [Calculator(1)] 1." }]
sampling_threshold = 0.001
max_positions = 4
max_samples = 8
max_input_tokens = 4
"""
_TINY = {
    "--documents": "30", "--chained-documents": "6", "--held-out-documents": "4", "--tau": "-9", "--chained-tau": "-9",
    "--chained-tools": "Calculator", "--finetune-steps": "2", "--finetune-batch": "2",
    "--measure-every": "1", "--chained-steps": "2", "--precision": "float32", "--count": "1",
}  # fmt: skip


async def log_of(command: Sequence[str], env: Mapping[str, str], steps: Iterable[int] = ()) -> str:
    """What a run that ends well says; each of ``steps`` is done within the deadline of a wait."""
    async with toolformer(*command, env=env) as running:
        for number in steps:
            await running.line_with(rf"^\[{number}/\d+\] \S+: done in ")
        assert await running.ended() == 0, running.log
    return running.log


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute of work, on cores that others use too
async def test_the_loop_goes_on_after_a_kill_and_comes_to_its_tables(tmp_path: Path) -> None:
    (tmp_path / "tools.toml").write_text(_OFF + _SHORT_PROMPT)
    env = {"TOOLFORMER_TOOLS": str(tmp_path / "tools.toml")}
    base = write_model(tmp_path / "base", tool="Calculator", positions=1024)
    folder = tmp_path / "run"
    command = ["reproduce", "--setting", "short", "--base", str(base), "--out", str(folder)]
    command += ["--no-before-words", "--no-given-inputs"]  # the model is a random one
    command += ["--suites", "own-two-calls", "own-articles", *(text for option in _TINY.items() for text in option)]

    async with toolformer(*command, env=env) as begun:
        for number in range(1, 7):
            await begun.line_with(rf"^\[{number}/15\] \S+: done in ")
        await begun.line_with(r"^\[7/15\] finetune-toolformer:")
        await begun.line_with(r"held-out texts")
        started = descendants(begun.process.pid)
        begun.process.send_signal(signal.SIGKILL)
        await begun.process.wait()
    assert len(started) == 3, "the step, a service, and what keeps that running"
    for pid in started:
        await gone(pid)
    ports = re.findall(r"listening on http://127\.0\.0\.1:(\d+)", (folder / "logs" / "services.log").read_text())
    assert len(ports) == 1

    log = await log_of(command, env, range(7, 16))
    assert re.findall(r"^\[(\d+)/15\] \S+: done already", log, re.MULTILINE) == [str(number) for number in range(1, 7)]
    assert "annotate Calculator" not in log.partition("calls-2")[0], "what was done is not done again"
    ports += re.findall(r"listening on http://127\.0\.0\.1:(\d+)", (folder / "logs" / "services.log").read_text())
    assert not any(is_listening(int(port)) for port in ports)

    _check_products(folder)
    log = await log_of(command, env)
    assert log.count("done already") == 15
    assert "tool services" not in log, "nothing is started for nothing"


def _check_products(folder: Path) -> None:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    steps = content["steps"]
    assert content["complete"]
    assert len(steps) == 15
    for step in steps.values():
        for name, product in step["products"].items():
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == product["sha256"]
    assert steps["texts"]["counts"] == {"documents": 30}
    assert steps["texts-chained"]["counts"] == {"documents": 6}
    for name in ("calls", "calls-2"):
        of_tool = steps[name]["counts"]["tools"]["Calculator"]
        assert 0 < of_tool["kept"] <= of_tool["candidates"]
        assert steps[name]["counts"]["texts"] > 0
    texts = steps["calls"]["counts"]["texts"]
    for name in ("finetune-cc", "finetune-toolformer"):
        assert (steps[name]["counts"]["examples"], steps[name]["counts"]["steps"]) == (texts, 2)
    again = steps["finetune-toolformer-2"]["counts"]
    assert (again["examples"], again["steps"]) == (texts + steps["calls-2"]["counts"]["texts"], 2)
    assert steps["evaluate-toolformer"]["counts"] == {"answers": 4, "failed": 0, "texts": {"own-articles": 10}}
    assert content["settings"]["base"] == "base", "no path of this machine"

    table = (folder / "model" / "results.md").read_text()
    assert table.startswith("Setting short: ")
    rows = [line.split(" | ")[0].strip("| ") for line in table.split("### ")[1].splitlines() if line.startswith("|")]
    assert rows[2:] == [
        "base (disabled)", "+ CC (disabled)", "Toolformer (disabled)", "Toolformer",
        "Toolformer, round 2, k = 3", "Toolformer, round 2, k = 3, 2 calls",
    ]  # fmt: skip
    assert "own articles" in table
    assert "Setting short" in (folder / "model" / "results.html").read_text()
    earlier = (folder / "model" / "round-1" / "merge" / "with_calls.jsonl").read_text()
    assert len(earlier.splitlines()) == steps["calls"]["counts"]["texts"]


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_base_models_of_a_size_are_made_with_services_that_run_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = ["reproduce", "--sizes", "16x1", "32x1", "--base-texts", "60", "--pretrain-steps", "2"]
    command += ["--positions", "64", "--precision", "float32", "--documents", "3", "--held-out-documents", "2"]
    command += ["--out", str(folder)]
    with tool_services() as registry:
        env = {f"TOOLFORMER_TOOL_{tool.name.upper()}_URL": tool.url for tool in ToolRegistry(registry)}
        log = await log_of([*command, "--until", "pretrain-16x1"], env, range(1, 6))
    assert "pretrain: 2/2 steps, loss " in log
    content = json.loads((folder / "manifest.json").read_text())
    assert not content["complete"]
    assert list(content["steps"]) == ["base-corpus", "texts", "texts-chained", "held-out", "pretrain-16x1"]
    assert content["steps"]["base-corpus"]["counts"]["drawn_texts"] == 60
    model = folder / "16x1" / "pretrain" / "model"
    with safe_open(model / "model.safetensors", framework="pt") as weights:
        sizes = [weights.get_tensor(name).numel() for name in weights.keys()]  # noqa: SIM118
    assert content["steps"]["pretrain-16x1"]["counts"]["parameters"] == sum(sizes)
    assert json.loads((model / "config.json").read_text())["n_embd"] == 16
