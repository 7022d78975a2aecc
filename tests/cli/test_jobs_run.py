"""``toolformer jobs run --up``: the pipeline with its services, from one command."""

import json
import re
import socket
from pathlib import Path

import pytest

from tests.cli.command import is_listening, run
from tests.training_jobs.runner.tiny_run import write_model

GPTJ_TOOLS = Path("models/gptj-tools").resolve()
SHORT = """
[Calculator]
task = 'Put calls, "[Calculator(1)]", into a text.'
demonstrations = [{ input = "One is 1.", output = "One is [Calculator(1)] 1." }]
max_positions = 4
max_samples = 4
max_input_tokens = 16
"""


@pytest.mark.slow
@pytest.mark.parametrize("finds_calls", [True, False])
async def test_one_command_starts_the_services_and_stops_them(tmp_path: Path, finds_calls: bool) -> None:
    (tmp_path / "tools.toml").write_text(SHORT)
    env = {"TOOLFORMER_TOOLS": str(tmp_path / "tools.toml")}
    text = {"id": "d", "text": "There are 24 boxes of books and 17 more from Ljubljana, so 24 + 17 = 41."}
    (tmp_path / "texts.jsonl").write_text(json.dumps(text) + "\n")
    model = GPTJ_TOOLS if finds_calls else write_model(tmp_path / "model")
    arguments = [str(tmp_path / "texts.jsonl"), "--run", str(tmp_path / "run"), "--model", str(model)]
    arguments += ["--tools", "Calculator", "--tau", "-100"]
    status, out, log = await run("jobs", "run", "--up", *arguments, env=env)
    assert status == (0 if finds_calls else 3), log
    assert ("texts with such a call, by tool" in out) == finds_calls
    assert ("form Calculator: nothing was kept; 1 of 1 texts: malformed, such as\n" in log) != finds_calls
    [port] = set(re.findall(r"calculator \| .* listening on http://127\.0\.0\.1:(\d+)", log))
    assert "is not up yet" not in log
    assert (tmp_path / "run" / "merge" / "report.html").is_file() == finds_calls
    assert not is_listening(int(port))


async def test_services_that_cannot_start_are_reported() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        env = {"TOOLFORMER_CALCULATOR_PORT": str(taken.getsockname()[1])}
        arguments = ["x.jsonl", "--run", "nowhere", "--model", "nothing", "--tools", "Calculator"]
        status, _, log = await run("jobs", "run", "--up", *arguments, env=env)
    assert status == 1
    assert log.splitlines()[-1] == "toolformer: the tool services did not start; their log above says why"
