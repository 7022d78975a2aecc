"""A thousand completions over a cache of eight sequences; tools are slow, fail or hang, and clients leave."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.pausing.load import Ask, SlowTools, completer_of, demo_asks
from benchmarks.pausing.ways import VllmCounts, Way, inside
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, CallStarted, CompletionRequest, Finished
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.tool_client import ToolResult
from toolformer.tool_wire import ToolError

COMPLETIONS: Final = 1_000
BLOCKS: Final = 9
"""Of vLLM's cache, one of which is never a sequence's. On a CPU a block has 128 tokens, more than a completion."""
_AT_ONCE: Final = 32
_TROUBLES: Final = {"none": 4, "slow": 3, "fails": 2, "hangs": 1}
"""What becomes of calls, with shares."""
_LEAVES: Final = 0.2
"""Share of the clients that leave before the end."""
_TOOL_SECONDS: Final = 1.0
_HUNG_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class TroubledTools:
    """Calculator and calendar that may be slow, fail or hang, as ``rng`` has it."""

    rng: random.Random

    async def call(
        self,
        name: str,
        input: str,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the client's signature
        **others: Any,
    ) -> ToolResult:
        [trouble] = self.rng.choices(list(_TROUBLES), list(_TROUBLES.values()))
        if trouble == "hangs":
            await asyncio.sleep(_TOOL_SECONDS if timeout is None else timeout)
            return ToolResult(name, input, None, ToolError("timeout", "no answer in time"), 0.0, 1)
        if trouble == "fails":
            return ToolResult(name, input, None, ToolError("unavailable", "no answer"), 0.0, 1)
        return await SlowTools(self.rng.uniform(0.05, 0.5) if trouble == "slow" else 0.0).call(name, input)


async def soak(options: argparse.Namespace) -> dict[str, Any]:
    """The report; ``faults`` in it is empty if all went well."""
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits

    rng, counts = random.Random(0), VllmCounts()
    limits = VllmLimits(max_sequences=16, max_waiting=100, hold_seconds=0.3)
    more: dict[str, Any] = {"limits": limits, "max_model_len": 512, "num_gpu_blocks_override": BLOCKS}
    backend = await asyncio.to_thread(inside, options.model, options, counts, **more)
    assert isinstance(backend, VllmBackend)
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    asks = [
        ask
        for suite in ("word problems", "dates", "facts", "questions")
        for ask in demo_asks(suite, (options.prompts or COMPLETIONS) // 4, tokenizer, tool_timeout=_TOOL_SECONDS)
    ]
    rng.shuffle(asks)
    completer, tally = completer_of(Way(backend), TroubledTools(rng)), Counter[str]()
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(ask: Ask) -> None:
        async with gate:
            leaves = rng.choice(("at a call", "after a token")) if rng.random() < _LEAVES else None
            try:
                async with asyncio.timeout(_HUNG_SECONDS):
                    tally.update(await outcome(completer, ask, leaves))
            except TimeoutError:
                tally["hung"] += 1

    await backend.start()
    try:
        await asyncio.gather(*map(one, asks))
        held = await nothing_held(backend)
        stats = backend.stats()
    finally:
        await backend.stop()
    report: dict[str, Any] = {
        "completions": len(asks),
        "outcomes": dict(tally),
        "dropped_pauses": stats.dropped_pauses,
        "recomputed_tokens": stats.recomputed_tokens,
        "vllm_preemptions": counts.preemptions,
        "held": held,
    }
    ends = sum(tally[outcome] for outcome in ("left", "stop", "length"))
    report["faults"] = [*([f"{ends} ends"] if ends != len(asks) else []), *held]
    print(report)
    return report


async def outcome(completer: Completer, ask: Ask, leaves: str | None) -> list[str]:
    """Ask, perhaps leave; how it ended, with how its calls did."""
    request = CompletionRequest(ask.ids, **{"tools": tuple(completer.registry.names())} | ask.fields)
    seen: list[str] = []
    async with contextlib.aclosing(completer.stream(request)) as events:
        async for event in events:
            if leaves == "after a token" or (leaves and isinstance(event, CallStarted)):
                return [*seen, "left"]
            if isinstance(event, CallFinished):
                error = event.record.error
                seen.append("call ok" if error is None else f"call {error.partition(':')[0]}")
            if isinstance(event, Finished):
                seen.append(event.reason)
    return seen


async def nothing_held(backend: Any) -> list[str]:
    """What is held although nobody is served, by the backend's counts and by vLLM's; empty if nothing is."""
    for _ in range(60):
        stats = backend.stats()
        held: Mapping[str, int] = {
            "waiting": stats.waiting, "running": stats.running, "in a call": stats.in_call, "tokens": stats.held_tokens,
            "requests in vLLM": backend._engine.get_num_unfinished_requests(),
        }  # fmt: skip
        # vLLM empties its prefix cache only where no sequence holds a block.
        if not any(held.values()) and await backend._engine.reset_prefix_cache():
            return []
        await asyncio.sleep(0.5)
    return [*(f"{count} {name}" for name, count in held.items() if count), "blocks of vLLM's cache"]
