"""The cost of a resume: what a completion waits for once its tool has answered."""

from __future__ import annotations

import asyncio
import random
import statistics
from collections.abc import Sequence

from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CallStarted, CompletionRequest
from inference_gateway.engine.stats import StepTimes
from toolformer.api_call import splice_result
from toolformer.tools import ToolRegistry


async def resume_cost(
    backend: LocalBackend,
    observed: list[StepTimes],
    asking: CompletionRequest,
    others: Sequence[list[int]],
    calls: int,
) -> dict[str, float]:
    """Milliseconds from the tool's answer to the next token, beside a decode step, while the prompts of ``others``
    decode; and the tokens that were computed again in all.

    Answers come after 2 to 12 ms, so at any moment of a step. ``asking`` makes a call of the calculator each of
    ``calls`` times; ``observed`` is where the backend reports its times."""
    tool_seconds = random.Random(0)
    tools = {"Calculator": ToolRegistry.load(files=[], environ={}).get("Calculator")}
    result = splice_result("408", backend.tokenizer, max_tokens=32)
    assert result is not None
    stop = asyncio.Event()

    async def background(ids: list[int]) -> None:
        while not stop.is_set():
            async for _ in backend.open(CompletionRequest(tuple(ids), max_tokens=200), {}):
                pass

    observed.clear()
    recomputed = backend.stats().recomputed_tokens
    tasks = [asyncio.create_task(background(ids)) for ids in others]
    for _ in range(calls):
        session, answered = backend.open(asking, tools), False
        async for action in session:
            if answered:
                break  # the call's text, which is reported once the next token is chosen
            if isinstance(action, CallStarted):
                await asyncio.sleep(tool_seconds.uniform(0.002, 0.012))
                answered = True
                session.splice(result)
        session.close()
    stop.set()
    await asyncio.gather(*tasks)
    return {
        "resume_ms_p50": 1_000 * statistics.median(time for times in observed for time in times.resumed),
        "decode_step_ms_p50": 1_000 * statistics.median(time for times in observed for time in times.between),
        "recomputed_tokens": backend.stats().recomputed_tokens - recomputed,
    }
