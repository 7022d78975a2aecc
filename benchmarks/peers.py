"""What the benchmarks of decoding share: peers that make tokens from the same prompts, their turns and their table."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from inference_gateway.backends.base import Backend
from inference_gateway.core import CompletionRequest, Finished, SamplingParams

PROMPT_TOKENS: Final = 16
SCALES: Final = 1 + 4 / 128
"""Bytes that a byte of whole numbers takes with its share of a scale."""

Make = Callable[[Sequence[list[int]], int], Awaitable[None]]
"""Makes so many tokens, greedily, behind each prompt; all prompts are of the same length."""


def streams_of(backend: Backend) -> Make:
    """Independent streams through a backend, none of which ends early."""

    async def one(prompt: list[int], tokens: int) -> None:
        request = CompletionRequest(tuple(prompt), max_tokens=tokens, sampling=SamplingParams(ignore_eos=True))
        async for action in backend.open(request, {}):
            assert not isinstance(action, Finished) or action.usage.completion_tokens == tokens

    async def make(prompts: Sequence[list[int]], tokens: int) -> None:
        await asyncio.gather(*(one(prompt, tokens) for prompt in prompts))

    return make


def batch_of(model: Any) -> Make:
    """transformers' ``generate`` on all prompts as one batch."""

    async def make(prompts: Sequence[list[int]], tokens: int) -> None:
        ids = torch.tensor(prompts, device=model.device)
        length = {"min_new_tokens": tokens, "max_new_tokens": tokens}
        with torch.inference_mode():
            made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, pad_token_id=0, **length)
        assert made.shape == (len(prompts), ids.shape[1] + tokens)

    return make


def convert(model: Path, folder: Path, kind: str) -> Path:
    """Write a checkpoint in CTranslate2's format, with weights of that kind, into a folder below ``folder``; it."""
    from ctranslate2.converters import TransformersConverter

    quiet_transformers()
    return Path(TransformersConverter(str(model)).convert(str(folder / kind), quantization=kind))


def ctranslate2_of(folder: Path, kind: str, threads: int) -> Make:
    """CTranslate2 on all prompts as one batch. Do not let it live on at exit: it can abort the process."""
    import ctranslate2

    generator = ctranslate2.Generator(
        str(folder), device="cpu", compute_type=kind, inter_threads=1, intra_threads=threads
    )
    words = json.loads((folder / "vocabulary.json").read_text())

    async def make(prompts: Sequence[list[int]], tokens: int) -> None:
        results = generator.generate_batch(
            [[words[token] for token in prompt] for prompt in prompts],
            beam_size=1,
            min_length=tokens,
            max_length=tokens,
            include_prompt_in_result=False,
            max_batch_size=0,
        )
        assert all(len(result.sequences_ids[0]) == tokens for result in results)

    return make


async def vllm_of(model: Path, dtype: str) -> Make:
    """Independent streams through the gateway's backend that is vLLM."""
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits

    limits = VllmLimits(max_sequences=32, max_waiting=100, hold_seconds=60)
    sizes: dict[str, Any] = {"max_model_len": 1_536, "cache_bytes": 2**30}
    backend = VllmBackend.load(model, [0], limits=limits, dtype=dtype, reuse_prefixes=False, **sizes)
    await backend.start()
    return streams_of(backend)


def quiet_transformers() -> None:
    """Neither warnings nor progress bars among a benchmark's lines."""
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


async def rate(make: Make, prompts: Sequence[list[int]], tokens: int) -> float:
    """Tokens per second of all prompts together."""
    started = time.perf_counter()
    await make(prompts, tokens)
    return len(prompts) * tokens / (time.perf_counter() - started)


@dataclass
class Peer:
    """What makes tokens, and how fast it was at best. ``resume``, of those that can pause, takes the prompts that
    decode meanwhile."""

    name: str
    make: Make
    bytes_a_step: float
    resident_mb: float = 0
    resume: Callable[[Sequence[list[int]]], Awaitable[dict[str, float]]] | None = None
    best: dict[str, float] = field(default_factory=dict)

    async def timed(self, what: str, prompts: Sequence[list[int]], tokens: int, counted: int) -> None:
        """Run, and keep the rate of ``counted`` tokens if it is the best so far, with the processor's time."""
        started, used = time.perf_counter(), time.process_time()
        await self.make(prompts, tokens)
        rate = counted / (time.perf_counter() - started)
        if rate > self.best.get(what, 0):
            self.best |= {what: rate, f"{what}, processor ms a token": 1e3 * (time.process_time() - used) / counted}


async def take_turns(peers: Sequence[Peer], options: argparse.Namespace, prefills: Sequence[int] = ()) -> None:
    """Have each peer decode ``options.tokens`` in each of ``options.streams``, and read prompts of those lengths;
    ``options.rounds`` times, one peer behind the other."""
    rng = np.random.default_rng(0)
    loads = [(f"{n} streams", (n, PROMPT_TOKENS), options.tokens, n * options.tokens) for n in options.streams]
    loads += [(f"prompt of {length}", (1, length), 1, length) for length in prefills]
    for (what, shape, tokens, counted), _, peer in itertools.product(loads, range(options.rounds), peers):
        await peer.timed(what, rng.integers(1, 2_000, shape).tolist(), tokens, counted)


def reading_speed(size: int) -> float:
    """Bytes a second of reading ``size`` of them, which are the largest there: the best of five."""
    threads = torch.get_num_threads()
    parts = np.array_split(np.ones(size, dtype=np.uint8), threads)
    with ThreadPoolExecutor(threads) as pool:

        def once() -> float:
            started = time.perf_counter()
            list(pool.map(np.max, parts))
            return size / (time.perf_counter() - started)

        return max(once() for _ in range(5))


def show(peers: Sequence[Peer], reading: float) -> None:
    """The table; for one stream also the share of what reading the weights allows."""
    kinds = [what for what in peers[0].best if "processor" not in what]
    print(f"{'tokens/s':>20}" + "".join(f"{what:>16}" for what in kinds) + f"{'of reading':>12}{'MiB':>8}")
    for peer in peers:
        share = peer.best[kinds[0]] * peer.bytes_a_step / reading
        rates = "".join(f"{peer.best[what]:>16.1f}" for what in kinds)
        print(f"{peer.name:>22}{rates}{share:>12.0%}{peer.resident_mb:>8.0f}")
