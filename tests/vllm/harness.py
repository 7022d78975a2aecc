"""vLLM and the local engine on the bundled model, and prompts for both."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from demo_world.suites import items
from inference_gateway.backends.loading import end_ids
from inference_gateway.backends.local import LocalBackend
from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits
from inference_gateway.completion import Completer
from inference_gateway.engine.limits import EngineLimits
from language_model.tokenizer import ByteLevelTokenizer
from tests.inference_gateway.backend_harness import Told, tell

MODEL: Final = Path(__file__).parents[2] / "models" / "gptj-tools"
TOKENIZER: Final = ByteLevelTokenizer.from_pretrained(MODEL)
LENGTH: Final = 512
"""Tokens of a sequence at most."""
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


@asynccontextmanager
async def local_backend() -> AsyncIterator[LocalBackend]:
    """The local engine, started."""
    backend = LocalBackend.load(MODEL, limits=EngineLimits(max_model_len=LENGTH, max_sequences=16))
    await backend.start()
    try:
        yield backend
    finally:
        await backend.stop()


async def idle(backend: VllmBackend) -> None:
    """Return once no completion holds anything; fails if that does not come."""
    within = backend._engine.output_processor
    async with asyncio.timeout(60):
        while True:
            stats = backend.stats()
            if not (stats.waiting or stats.running or stats.in_call or within.has_unfinished_requests()):
                return
            await asyncio.sleep(0.01)


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
