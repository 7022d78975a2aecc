"""vLLM, inside the gateway and as a server, and the local engine, all on the bundled model; and prompts for them."""

import asyncio
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from demo_world.suites import items
from inference_gateway.backends.loading import end_ids
from inference_gateway.backends.local import LocalBackend
from inference_gateway.backends.model_server import ServerAddress
from inference_gateway.backends.openai import OpenAIServer
from inference_gateway.backends.remote import RemoteBackend, RemoteLimits
from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits
from inference_gateway.call_vocabulary import CallVocabulary
from inference_gateway.completion import Completer
from inference_gateway.engine.limits import EngineLimits
from language_model.tokenizer import ByteLevelTokenizer
from tests.inference_gateway.backend_harness import Told, tell
from tests.support.redis_server import free_port

MODEL: Final = Path(__file__).parents[2] / "models" / "gptj-tools"
TOKENIZER: Final = ByteLevelTokenizer.from_pretrained(MODEL)
SERVED_AS: Final = "gptj-tools"
"""What `vllm serve` calls the model."""
LENGTH: Final = 512
"""Tokens of a completion's sequence at most."""
_START_SECONDS: Final = 240
TOOLS: Final = ("Calculator", "Calendar", "WikiSearch", "QA", "MT")


def load(hold_seconds: float = 30.0, **more: Any) -> VllmBackend:
    """vLLM with the bundled model; ``more`` are arguments of its engine."""
    limits = VllmLimits(max_sequences=16, max_waiting=64, hold_seconds=hold_seconds)
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


@contextmanager
def vllm_serve(log: Path) -> Iterator[str]:
    """The address of a ``vllm serve`` with the bundled model, a process that writes to ``log``."""
    port = str(free_port())
    command = [
        *(str(Path(sys.executable).with_name("vllm")), "serve", str(MODEL), "--port", port),
        *("--served-model-name", SERVED_AS, "--dtype", "float32", "--enforce-eager", "--enable-prompt-tokens-details"),
        "--no-enable-chunked-prefill",  # a prompt in parts, with a seed, ends vLLM 0.32 on a CPU
    ]
    with log.open("wb") as written:
        process = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT)
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
            assert process.poll() is None, f"vllm serve ended:\n{log.read_text()}"
            time.sleep(1)
    raise AssertionError(f"vllm serve was not ready after {_START_SECONDS} s:\n{log.read_text()}")


@asynccontextmanager
async def remote_backend(url: str) -> AsyncIterator[RemoteBackend]:
    """A started backend that uses the server at ``url``, which nothing may be left of at the end."""
    backend = RemoteBackend(
        OpenAIServer(ServerAddress(url), TOKENIZER),
        TOKENIZER,
        CallVocabulary.of(TOKENIZER, end_ids(MODEL, TOKENIZER)),
        RemoteLimits(max_sequences=16, max_waiting=64, max_model_len=LENGTH),
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
    backend = LocalBackend.load(MODEL, limits=EngineLimits(max_model_len=LENGTH, max_sequences=16))
    await backend.start()
    try:
        yield backend
    finally:
        await backend.stop()


async def idle(backend: VllmBackend | RemoteBackend) -> None:
    """Return once no completion holds anything, and vLLM computes none; fails if that does not come."""
    async with asyncio.timeout(60):
        while True:
            stats = backend.stats()
            if not (stats.waiting or stats.running or stats.in_call or await _computing(backend)):
                return
            await asyncio.sleep(0.01)


async def _computing(backend: VllmBackend | RemoteBackend) -> bool:
    if isinstance(backend, VllmBackend):
        return bool(backend._engine.output_processor.has_unfinished_requests())
    async with httpx.AsyncClient(trust_env=False) as client:
        metrics = (await client.get(f"{backend._server.url}/metrics")).text
    requests = re.findall(r"^vllm:num_requests_(?:running|waiting)\{.*\} (\S+)$", metrics, re.MULTILINE)
    assert requests
    return any(map(float, requests))


def prompts(suite: str, count: int) -> list[str]:
    """The beginnings of ``count`` texts of the demo world."""
    drawn = [item for part in items(suite, count=-(-count // 2)).values() for item in part]
    return [f"{item.context} {item.bare}".strip() for item in drawn[:count]]


async def tell_all(completer: Completer, texts: Sequence[str], *, at_once: int = 8, **fields: Any) -> list[Told]:
    """Complete each of ``texts``, so many at a time."""
    gate = asyncio.Semaphore(at_once)

    async def one(text: str) -> Told:
        async with gate:
            return await tell(completer, text, TOKENIZER, **{"tools": TOOLS} | fields)

    return list(await asyncio.gather(*map(one, texts)))
