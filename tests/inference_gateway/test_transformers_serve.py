"""A server made by others: `transformers serve`, which takes text and returns text, and nothing else."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.backends.model_server import ServerAddress
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.completion import Completer
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.settings import BUNDLED_MODEL
from services.calculator.app import build_app as calculator
from tests.inference_gateway.backend_harness import NO_CIRCUIT, run_prompt
from tests.inference_gateway.http_harness import serving, tools_at
from tests.support.processes import started
from tests.support.redis_server import free_port
from toolformer.tool_client import ToolClient

_MAIN = """
import sys
import transformers.modeling_utils
from transformers.cli.serve import Serve

# It asks for a device map even on a CPU, and that needs a package which nothing else here does.
transformers.modeling_utils.check_and_set_device_map = lambda device_map: None
Serve(force_model=sys.argv[1], device="cpu", dtype="float32", host="127.0.0.1", port=int(sys.argv[2]))
"""
_PROMPTS = [
    "There are 24 boxes with 17 books each. How many books are there altogether? The answer is",
    "15% of 460 is",
]
"""What makes the model call the calculator and nothing else: another call could not be banned on such a server."""


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_bundled_model_calls_its_tool_behind_transformers_serve(tmp_path: Path) -> None:
    (tmp_path / "hub").mkdir()
    (tmp_path / "serve_here.py").write_text(_MAIN)
    port = str(free_port())
    env = {"HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        tools = tools_at({"Calculator": await enter(serving(calculator()))})
        client = await enter(ToolClient(tools, NO_CIRCUIT))
        process = await enter(started("serve_here", str(BUNDLED_MODEL), port, env=env))
        await process.line_with("Uvicorn running on")
        local = LocalBackend.load(BUNDLED_MODEL, limits=EngineLimits(max_sequences=2, max_model_len=256))
        address = ServerAddress(f"http://127.0.0.1:{port}", model=str(BUNDLED_MODEL))
        limits = RemoteLimits(max_model_len=256)
        remote = RemoteBackend(OpenAIServer(address, local.tokenizer), local.tokenizer, local.vocabulary, limits)
        for backend in (local, remote):
            await backend.start()
            stack.push_async_callback(backend.stop)
        assert remote.ready(), remote.why_not_ready()
        assert [notice.split(":")[0] for notice in remote.notices] == [
            "it takes no token ids",
            "it does not report the ids of its tokens",
            "it reports no likely tokens",
            "it takes no biases",
        ]
        calls = 0
        for prompt in _PROMPTS:
            expected = await run_prompt(
                Completer(local, tools, client), prompt, local.tokenizer, max_tokens=32, api_top_k=1
            )
            result = await run_prompt(
                Completer(remote, tools, client), prompt, local.tokenizer, max_tokens=32, api_top_k=1
            )
            assert (result.text, result.calls) == (expected.text, expected.calls)
            calls += len(result.calls)
        assert calls
