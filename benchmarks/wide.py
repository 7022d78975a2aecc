"""Decoding and reading prompts at GPT-J-6B's width, where the weights fit into no cache; ``decode.py --width`` runs it.

Random weights in the published format, 805 million of them with four layers of 4,096. The engine computes with each of
its forms of weights, CTranslate2 in float32 and int8; peers take turns, and the best round of each counts. Then what a
resume costs each form, its call forced by ``logit_bias``."""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from benchmarks.reports import memory_mib
from benchmarks.resume import resume_cost
from benchmarks.serving.gateway import endless
from inference_gateway.backends.base import Backend
from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CompletionRequest, Finished, SamplingParams
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.stats import StepTimes
from language_model import checkpoint
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.native.compiled import CompiledGPTJ
from language_model.native.packing import Weights
from language_model.native.quantized import folder_of
from language_model.tokenizer import ByteLevelTokenizer

PREFILLS: Final = (512, 1_500)
PROMPT_TOKENS: Final = 16
CALLS: Final = 20
"""Resumes of which the median is taken."""

SCALES: Final = 1 + 4 / 128
"""Bytes that a byte of whole numbers takes with its share of a scale."""


@dataclass
class Peer:
    """What makes tokens: ``make`` takes prompts and how many tokens each gets. ``resume``, of those that can pause,
    takes how many prompts decode meanwhile."""

    name: str
    make: Callable[[Sequence[list[int]], int], Awaitable[None]]
    bytes_a_step: float
    resident_mb: float
    resume: Callable[[Sequence[list[int]]], Awaitable[dict[str, float]]] | None = None
    best: dict[str, float] = field(default_factory=dict)

    async def timed(self, what: str, prompts: Sequence[list[int]], tokens: int, counted: int) -> None:
        """Run, and keep the rate of ``counted`` tokens if it is the best so far, with the processor's time."""
        started, used = time.perf_counter(), time.process_time()
        await self.make(prompts, tokens)
        rate = counted / (time.perf_counter() - started)
        if rate > self.best.get(what, 0):
            self.best |= {what: rate, f"{what}, processor ms a token": 1e3 * (time.process_time() - used) / counted}


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The table of ``options.width``, ``options.layers``, ``options.streams`` and ``options.tokens``."""
    torch.set_num_threads(max(options.threads))
    with tempfile.TemporaryDirectory(dir=options.scratch) as directory:
        model = Path(directory) / "model"
        parameters = random_checkpoint(model, options.model, options.width, options.layers)
        reading = reading_speed(parameters)
        print(f"{parameters / 1e6:,.0f} million weights; memory is read at {reading / 1e9:.1f} GB/s")
        peers = [await engine(model, weights, parameters) for weights in Weights]
        peers += [ctranslate2(model, kind, parameters) for kind in ("float32", "int8")]
        rng = np.random.default_rng(0)
        for streams, _, peer in itertools.product(options.streams, range(options.rounds), peers):
            prompts = rng.integers(1, 2_000, (streams, PROMPT_TOKENS)).tolist()
            await peer.timed(f"{streams} streams", prompts, options.tokens, streams * options.tokens)
        for length, _, peer in itertools.product(PREFILLS, range(options.rounds), peers):
            await peer.timed(f"prompt of {length}", rng.integers(1, 2_000, (1, length)).tolist(), 1, length)
        show(peers, reading)
        resumes = []
        print(f"\n{'p50':>20}{'streams':>9}{'resume ms':>11}{'decode step ms':>16}{'in steps':>10}{'recomputed':>12}")
        for peer, streams in itertools.product(peers, options.streams):
            if peer.resume is not None:
                prompts = rng.integers(1, 2_000, (streams - 1, PROMPT_TOKENS)).tolist()
                cost = await peer.resume(prompts)
                resumes.append({"peer": peer.name, "streams": streams} | cost)
                resume, step, recomputed = cost.values()
                print(f"{peer.name:>20}{streams:>9}{resume:>11.1f}{step:>16.1f}{resume / step:>10.2f}{recomputed:>12}")
    rows = [
        {"peer": peer.name, "resident MiB": peer.resident_mb, "bytes a step": peer.bytes_a_step} | peer.best
        for peer in peers
    ]
    table = {"reading_bytes_per_s": reading, "rows": rows, "resume": resumes}
    return {"width": options.width, "layers": options.layers, **table}


def random_checkpoint(folder: Path, model: Path, width: int, layers: int) -> int:
    """Write a checkpoint of random weights with ``model``'s vocabulary; how many weights a step reads."""
    shutil.copytree(model, folder, ignore=shutil.ignore_patterns("*.safetensors", "SHA256SUMS", "int*"))
    size = json.loads((model / "config.json").read_text())["vocab_size"]
    config = GPTJConfig(size, 2048, width, layers, width // 256, rotary_dim=64, bos_token_id=0, eos_token_id=0)
    made = GPTJ.from_config(config, dtype=torch.bfloat16)
    checkpoint.save(made, folder)
    return sum(one.numel() for one in made.parameters()) - made.wte.weight.numel()


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


def streams_of(backend: Backend) -> Callable[[Sequence[list[int]], int], Awaitable[None]]:
    """Independent streams through a backend, each of which makes all its tokens."""

    async def one(prompt: list[int], tokens: int) -> None:
        request = CompletionRequest(tuple(prompt), max_tokens=tokens, sampling=SamplingParams(ignore_eos=True))
        async for action in backend.open(request, {}):
            assert not isinstance(action, Finished) or action.usage.completion_tokens == tokens

    async def make(prompts: Sequence[list[int]], tokens: int) -> None:
        await asyncio.gather(*(one(prompt, tokens) for prompt in prompts))

    return make


async def engine(model: Path, weights: Weights, parameters: int) -> Peer:
    """The local engine with such weights."""
    before = memory_mib("self")
    tokenizer = ByteLevelTokenizer.from_pretrained(model)
    limits = EngineLimits(
        max_sequences=32, max_model_len=1_536, reuse_prefixes=False, prefill_tokens=512, cache_tokens=8_192
    )
    backend = endless(LocalBackend(CompiledGPTJ.load(model, weights), tokenizer, "bench", limits))
    observed: list[StepTimes] = []
    backend.observe(observed.append)
    await backend.start()
    make = streams_of(backend)
    likely = ((")", 22.0), (" ->", 21.0))  # the penalty puts the second after the first
    bias = tuple((tokenizer.encode(text)[0], logit) for text, logit in likely)
    asking = CompletionRequest(
        (1,) * PROMPT_TOKENS,
        max_tokens=48,
        sampling=SamplingParams(frequency_penalty=2, logit_bias=bias),
        tools=("Calculator",),
        api_top_k=tokenizer.vocab_size,  # a call opens wherever it may
    )

    async def resume(others: Sequence[list[int]]) -> dict[str, float]:
        return await resume_cost(backend, observed, asking, others, CALLS)

    await make([[1] * PROMPT_TOKENS], 2)
    gc.collect()
    size = {Weights.FLOAT32: 4.0, Weights.BFLOAT16: 2.0, Weights.INT8: SCALES, Weights.INT4: SCALES - 0.5}[weights]
    assert weights < Weights.INT8 or folder_of(model, weights).is_dir()
    return Peer(f"engine {weights.name.lower()}", make, size * parameters, memory_mib("self") - before, resume)


def ctranslate2(model: Path, kind: str, parameters: int) -> Peer:
    """CTranslate2 with weights of that kind."""
    import ctranslate2
    import transformers
    from ctranslate2.converters import TransformersConverter

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = TransformersConverter(str(model)).convert(str(model.parent / kind), quantization=kind)
    gc.collect()
    before = memory_mib("self")
    generator = ctranslate2.Generator(
        folder, device="cpu", compute_type=kind, inter_threads=1, intra_threads=torch.get_num_threads()
    )
    words = json.loads((Path(folder) / "vocabulary.json").read_text())

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

    generator.generate_batch([[words[1]] * PROMPT_TOKENS], beam_size=1, max_length=2, include_prompt_in_result=False)
    size = 4.0 if kind == "float32" else 1.0
    return Peer(f"ctranslate2 {kind}", make, size * parameters, memory_mib("self") - before)


def show(peers: Sequence[Peer], reading: float) -> None:
    """The table; for one stream also the share of what reading the weights allows."""
    kinds = [what for what in peers[0].best if "processor" not in what]
    print(f"{'tokens/s':>20}" + "".join(f"{what:>16}" for what in kinds) + f"{'of reading':>12}{'MiB':>8}")
    for peer in peers:
        share = peer.best[kinds[0]] * peer.bytes_a_step / reading
        rates = "".join(f"{peer.best[what]:>16.1f}" for what in kinds)
        print(f"{peer.name:>20}{rates}{share:>12.0%}{peer.resident_mb:>8.0f}")
