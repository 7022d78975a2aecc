"""LangChain, LlamaIndex and LiteLLM, unmodified, against the gateway; skipped where they are not installed.

They bring hundreds of packages, so they live in an environment apart: ``pip install langchain-openai
llama-index-llms-openai-like litellm``, and name its Python in ``TOOLFORMER_FRAMEWORKS``.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import gateway
from tests.support.serving import serving

SHOWN = " It is [Calculator(24 * 17) -> 408] 408 books."
HIDDEN = " It is 408 books."
ROOT = Path(__file__).parents[2]


async def printed_by(python: str, script: str, url: str) -> Any:
    """What ``script`` printed."""
    process = await asyncio.create_subprocess_exec(
        python,
        "-m",
        f"tests.inference_gateway.frameworks.{script}",
        f"{url}/v1",
        cwd=ROOT,
        env=os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "*"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(240):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode(errors="replace")[-3000:]
    return json.loads(output)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "with_calls"),
    [
        ("langchain_client", {"completion"}),
        ("llama_index_client", {"completion", "completion stream", "chat", "chat stream"}),
        ("litellm_client", set()),
    ],
)
async def test_a_framework(script: str, with_calls: set[str]) -> None:
    python = os.environ.get("TOOLFORMER_FRAMEWORKS")
    if not python:
        pytest.skip("the frameworks are not installed: pip install them apart and set TOOLFORMER_FRAMEWORKS")
    async with serving(calculator()) as url, gateway({"Calculator": url}, chat_template="plain") as at:
        got = await printed_by(python, script, at.url)
    for way, text in (("shown", SHOWN), ("hidden", HIDDEN)):
        assert {name: answer[0] for name, answer in got[way].items()} == dict.fromkeys(got[way], text)
        outputs = {name: [call["output"] for call in answer[1]] for name, answer in got[way].items() if answer[1]}
        assert outputs == {name: ["408"] for name in with_calls}
