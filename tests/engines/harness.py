"""vLLM, inside the gateway and as a server, llama.cpp's server and the local engine, all on the bundled model; and
prompts for them."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx

from demo_world.suites import items
from inference_gateway.backends.loading import end_ids
from inference_gateway.backends.local import LocalBackend
from inference_gateway.backends.model_server import ServerAddress
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.completion import Completer
from inference_gateway.engine.limits import EngineLimits
from language_model.tokenizer import ByteLevelTokenizer
from tests.inference_gateway.backend_harness import Completed, run_prompt
from tests.support.redis_server import free_port

if TYPE_CHECKING:
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend

MODEL: Final = Path(__file__).parents[2] / "models" / "gptj-tools"
TOKENIZER: Final = ByteLevelTokenizer.from_pretrained(MODEL)
SERVED_AS: Final = "gptj-tools"
"""What servers call the model."""
LENGTH: Final = 512
"""Tokens of a completion's sequence at most."""
AT_ONCE: Final = 16
"""Completions."""
LLAMA: Final = Path(sys.prefix) / "llama"
"""What `make test-llama` makes."""
_START_SECONDS: Final = 600
_UNFINISHED: Final = "vllm:num_requests_(?:running|waiting)|llamacpp:requests_(?:processing|deferred)"
"""What vLLM and llama.cpp count as requests that they compute or that wait."""
TOOLS: Final = ("Calculator", "Calendar", "WikiSearch", "QA", "MT")


def load(hold_seconds: float = 30.0, **more: Any) -> VllmBackend:
    """vLLM with the bundled model; ``more`` are arguments of its engine."""
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits

    limits = VllmLimits(max_sequences=AT_ONCE, max_waiting=64, hold_seconds=hold_seconds)
    return VllmBackend.load(
        MODEL, end_ids(MODEL, TOKENIZER), limits=limits, max_model_len=LENGTH, enforce_eager=True, **more
    )


@asynccontextmanager
async def vllm_backend(**more: Any) -> AsyncIterator[VllmBackend]:
    """A started backend in which nothing may be left at the end."""
    backend = await asyncio.to_thread(load, **more)
    await backend.start()
    try:
        yield backend
        await idle(backend)
    finally:
        await backend.stop()


def vllm_serve(log: Path) -> AbstractContextManager[str]:
    """The address of a ``vllm serve`` with the bundled model; it writes to ``log``."""
    command = [
        *(str(Path(sys.executable).with_name("vllm")), "serve", str(MODEL)),
        *("--served-model-name", SERVED_AS, "--dtype", "float32", "--enforce-eager", "--enable-prompt-tokens-details"),
        "--no-enable-chunked-prefill",  # a prompt in parts, with a seed, ends vLLM 0.32 on a CPU
    ]
    return _served(command, log)


def llama_serve(log: Path) -> AbstractContextManager[str]:
    """The address of a ``llama-server`` with the bundled model; it writes to ``log``."""
    model = log.with_name("model.gguf")
    subprocess.run([LLAMA / "bin" / "python", Path(__file__).with_name("gptj_as_phi2.py"), MODEL, model], check=True)
    command = [
        *(str(LLAMA / "build" / "bin" / "llama-server"), "--model", str(model), "--alias", SERVED_AS, "--metrics"),
        *("--parallel", str(AT_ONCE), "--ctx-size", str(AT_ONCE * LENGTH), "--no-kv-unified"),
        *("--cache-type-k", "f32", "--cache-type-v", "f32", "--flash-attn", "off", "--threads", "1"),
    ]
    return _served(command, log)


@contextmanager
def _served(command: Sequence[str], log: Path) -> Iterator[str]:
    port = free_port()
    with log.open("wb") as written:
        process = subprocess.Popen([*command, "--port", str(port)], stdout=written, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _await_health(url, process, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_health(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    with httpx.Client(trust_env=False) as client:
        for _ in range(_START_SECONDS):
            try:
                if client.get(f"{url}/health").is_success:
                    return
            except httpx.TransportError:
                pass
            assert process.poll() is None, f"the server ended:\n{log.read_text()}"
            time.sleep(1)
    raise AssertionError(f"the server was not ready after {_START_SECONDS} s:\n{log.read_text()}")


@asynccontextmanager
async def remote_backend(url: str) -> AsyncIterator[RemoteBackend]:
    """A started backend that uses the server at ``url``, which nothing may be left of at the end."""
    backend = RemoteBackend(
        OpenAIServer(ServerAddress(url), TOKENIZER),
        TOKENIZER,
        CallVocabulary.of(TOKENIZER, end_ids(MODEL, TOKENIZER)),
        RemoteLimits(max_sequences=AT_ONCE, max_waiting=64, max_model_len=LENGTH),
    )
    await backend.start()
    try:
        assert backend.ready(), backend.why_not_ready()
        yield backend
        await idle(backend)
    finally:
        await backend.stop()


@asynccontextmanager
async def local_backend() -> AsyncIterator[LocalBackend]:
    """The local engine, started."""
    backend = LocalBackend.load(MODEL, limits=EngineLimits(max_model_len=LENGTH, max_sequences=AT_ONCE))
    await backend.start()
    try:
        yield backend
    finally:
        await backend.stop()


async def idle(backend: VllmBackend | RemoteBackend) -> None:
    """Return once no completion holds anything, and the engine computes none; fails if that does not come."""
    async with asyncio.timeout(60):
        while True:
            stats = backend.stats()
            if not (stats.waiting or stats.running or stats.in_call or await _computing(backend)):
                return
            await asyncio.sleep(0.01)


async def _computing(backend: VllmBackend | RemoteBackend) -> bool:
    if not isinstance(backend, RemoteBackend):
        return bool(backend._engine.output_processor.has_unfinished_requests())
    async with httpx.AsyncClient(trust_env=False) as client:
        metrics = (await client.get(f"{backend._server.url}/metrics")).text
    requests = re.findall(rf"^(?:{_UNFINISHED})(?:\{{.*\}})? (\S+)$", metrics, re.MULTILINE)
    assert requests
    return any(map(float, requests))


def prompts(suite: str, count: int) -> list[str]:
    """The beginnings of ``count`` texts of the demo world."""
    drawn = [item for part in items(suite, count=-(-count // 2)).values() for item in part]
    return [f"{item.context} {item.bare}".strip() for item in drawn[:count]]


async def run_prompts(
    completer: Completer, texts: Sequence[str], *, at_once: int = 8, **fields: Any
) -> list[Completed]:
    """Complete each of ``texts``, so many at a time."""
    gate = asyncio.Semaphore(at_once)

    async def one(text: str) -> Completed:
        async with gate:
            return await run_prompt(completer, text, TOKENIZER, **{"tools": TOOLS} | fields)

    return list(await asyncio.gather(*map(one, texts)))
