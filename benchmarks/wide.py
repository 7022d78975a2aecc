"""Decoding and reading prompts at GPT-J-6B's width, where the weights fit into no cache; ``decode.py --width`` runs it.

Random weights in the published format, 805 million of them with four layers of 4,096. The engine computes with each of
its forms of weights, CTranslate2 in float32 and int8, transformers in bfloat16 on batches; peers take turns, and the
best round of each counts. Then what a resume costs each form, its call forced by ``logit_bias``. Where vLLM is
installed (`make test-vllm` makes such an environment) only the backend that is vLLM is measured, in bfloat16."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import shutil
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks import peers
from benchmarks.peers import PROMPT_TOKENS, SCALES, Peer
from benchmarks.reports import memory_mib
from benchmarks.resume import resume_cost
from benchmarks.serving.gateway import endless
from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CompletionRequest, SamplingParams
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
CALLS: Final = 20
"""Resumes of which the median is taken."""


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """The table of ``options.width``, ``options.layers``, ``options.streams`` and ``options.tokens``."""
    torch.set_num_threads(max(options.threads))
    with tempfile.TemporaryDirectory(dir=options.scratch) as directory:
        model = Path(directory) / "model"
        parameters = random_checkpoint(model, options.model, options.width, options.layers)
        reading = peers.reading_speed(parameters)
        print(f"{parameters / 1e6:,.0f} million weights; memory is read at {reading / 1e9:.1f} GB/s")
        if find_spec("vllm"):
            measured = [Peer("vLLM bfloat16", await peers.vllm_of(model, "bfloat16"), 2.0 * parameters)]
        else:
            measured = [await engine(model, weights, parameters) for weights in Weights]
            measured += [await ctranslate2(model, kind, parameters) for kind in ("float32", "int8")]
            measured.append(transformers_of(model, parameters))
        await peers.take_turns(measured, options, PREFILLS)
        peers.show(measured, reading)
        resumes = []
        print(f"\n{'p50':>20}{'streams':>9}{'resume ms':>11}{'decode step ms':>16}{'in steps':>10}{'recomputed':>12}")
        for peer, streams in itertools.product(measured, options.streams):
            if peer.resume is not None:
                cost = await peer.resume([[1] * PROMPT_TOKENS] * (streams - 1))
                resumes.append({"peer": peer.name, "streams": streams} | cost)
                resume, step, recomputed = cost.values()
                print(f"{peer.name:>20}{streams:>9}{resume:>11.1f}{step:>16.1f}{resume / step:>10.2f}{recomputed:>12}")
    rows = [
        {"peer": peer.name, "resident MiB": peer.resident_mb, "bytes a step": peer.bytes_a_step} | peer.best
        for peer in measured
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
    make = peers.streams_of(backend)
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


async def ctranslate2(model: Path, kind: str, parameters: int) -> Peer:
    """CTranslate2 with weights of that kind."""
    folder = peers.convert(model, model.parent, kind)
    gc.collect()
    before = memory_mib("self")
    make = peers.ctranslate2_of(folder, kind, torch.get_num_threads())
    await make([[1] * PROMPT_TOKENS], 2)
    size = 4.0 if kind == "float32" else 1.0
    return Peer(f"ctranslate2 {kind}", make, size * parameters, memory_mib("self") - before)


def transformers_of(model: Path, parameters: int) -> Peer:
    """transformers with weights in bfloat16."""
    import transformers

    before = memory_mib("self")
    theirs = transformers.GPTJForCausalLM.from_pretrained(model, dtype=torch.bfloat16).eval()
    return Peer("transformers bfloat16", peers.batch_of(theirs), 2.0 * parameters, memory_mib("self") - before)
