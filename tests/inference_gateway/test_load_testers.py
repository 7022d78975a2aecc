"""Real load testers, unmodified, against a gateway with the bundled model; skipped where they are not installed.

Each brings hundreds of packages of its own, so it lives in an environment apart: name its command in
``TOOLFORMER_VLLM`` or ``TOOLFORMER_GUIDELLM``, or have ``vllm`` or ``guidellm`` on PATH.
"""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from tests.inference_gateway.http_harness import Gateway, gateway

pytestmark = pytest.mark.slow

MODEL: Final = Path(__file__).parents[2] / "models" / "gptj-tools"
REQUESTS: Final = 8
TOKENS: Final = 16
OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "NO_PROXY": "*"}


@pytest.fixture
async def bundled() -> AsyncIterator[Gateway]:
    """The bundled model; no tool answers."""
    limits = EngineLimits(max_model_len=256, max_sequences=8)
    async with gateway(make=lambda: LocalBackend.load(MODEL, limits=limits)) as served:
        yield served


async def report_of(name: str, options: list[str], report: Path) -> Any:
    """What the load tester ``name`` wrote to ``report``."""
    command = os.environ.get(f"TOOLFORMER_{name.upper()}") or shutil.which(name)
    if not command:
        pytest.skip(f"{name} is not installed: pip install it apart and set TOOLFORMER_{name.upper()}")
    process = await asyncio.create_subprocess_exec(
        command,
        *options,
        env=os.environ | OFFLINE,
        cwd=report.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(900):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, output.decode(errors="replace")[-3000:]
    return json.loads(await asyncio.to_thread(report.read_text))


async def test_vllm_bench_serve(bundled: Gateway, tmp_path: Path) -> None:
    options = ["bench", "serve", "--backend", "openai", "--base-url", bundled.url, "--endpoint", "/v1/completions"]
    options += ["--model", bundled.backend.model_name, "--tokenizer", str(MODEL), "--num-prompts", str(REQUESTS)]
    options += ["--dataset-name", "random", "--random-input-len", "16", "--random-output-len", str(TOKENS)]
    options += ["--ignore-eos", "--save-result", "--result-dir", str(tmp_path), "--result-filename", "report.json"]
    report = await report_of("vllm", options, tmp_path / "report.json")
    assert (report["completed"], report["total_output_tokens"]) == (REQUESTS, REQUESTS * TOKENS)
    # Each was received and answered; one more tries whether the server is there.
    assert await bundled.metric('http_requests_total{method="POST",route="/v1/completions",status="200"}') >= REQUESTS


async def test_guidellm(bundled: Gateway, tmp_path: Path) -> None:
    served = f"target={bundled.url},model={bundled.backend.model_name},request_format=/v1/completions"
    options = ["run", "--backend", f"kind=openai_http,{served}", "--tokenizer", f"kind=hf_auto,model={MODEL}"]
    options += ["--profile", "kind=synchronous", "--constraint", f"kind=max_requests,count={REQUESTS}"]
    options += ["--data", f"kind=synthetic_text,prompt_tokens=16,output_tokens={TOKENS}", "--disable-console"]
    options += ["--output", f"kind=json,path={tmp_path / 'report.json'}"]
    report = await report_of("guidellm", options, tmp_path / "report.json")
    [benchmark] = report["benchmarks"]
    assert len(benchmark["requests"]["successful"]) == REQUESTS
    assert not benchmark["requests"]["errored"]
    assert {request["output_tokens"] for request in benchmark["requests"]["successful"]} == {TOKENS}
