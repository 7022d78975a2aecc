"""GPT-J-6B's exact shape on one machine: quantized, served, asked with calls, eight at a time; time and memory of each.

    python -m benchmarks.gptj_6b --scratch DIR [--to int8] [--tokenizer FOLDER] [--keep]

Makes a checkpoint of random weights in the published format (12 GB in DIR, in shards, as float16), quantizes it and
starts a gateway on what came of it; the last two in processes of their own. The peak memory of each is read. As the
weights are random, those of the head make an opening, a closing parenthesis and an arrow likely, so that calls come;
``frequency_penalty`` makes them take turns. The tool takes a second. ``--tokenizer`` is a folder with GPT-2's
tokenizer.json; the bundled model's does as well."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import os
import random
import re
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
import torch
from safetensors.torch import save_file

from benchmarks.processes import started
from benchmarks.reports import RESULTS, memory_mib, write_report
from benchmarks.serving.metrics import scrape
from benchmarks.serving.tools import calculator
from language_model.checkpoint import to_published
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.native import quantize as quantizing
from language_model.tokenizer import ByteLevelTokenizer

TOOL_SECONDS = 1.0
LONG_PROMPT = 1_000
"""Tokens of each of the eight sequences in the largest load: drawn from all, so that they need all of the embedding."""

CACHE_MIB = 3_700
"""Of keys and values: 8,457 tokens of GPT-J-6B in bfloat16, for eight of these sequences."""


def make_checkpoint(folder: Path, tokenizer: Path, config: GPTJConfig) -> None:
    """Random weights by the published names, a layer a shard."""
    folder.mkdir(parents=True)
    config.save(folder)
    shutil.copy(tokenizer / "tokenizer.json", folder)
    with torch.device("meta"):
        published = to_published(GPTJ(config))
    generator = torch.Generator().manual_seed(0)
    places: dict[str, str] = {}
    for shard, names in itertools.groupby(sorted(published, key=_shard), key=_shard):
        tensors = {
            name: torch.empty(published[name].shape).normal_(0, 0.02, generator=generator).half() for name in names
        }
        for name in tensors:
            if "ln_" in name:
                tensors[name].fill_(name.endswith("weight"))
        if "lm_head.weight" in tensors:
            for token, logit in zip(call_tokens(folder), (20, 21, 22), strict=True):
                tensors["lm_head.weight"][token], tensors["lm_head.bias"][token] = 0, logit
        save_file(tensors, folder / shard, metadata={"format": "pt"})
        places |= dict.fromkeys(tensors, shard)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))


def call_tokens(folder: Path) -> list[int]:
    """The tokens of an opening, of an arrow and of a closing parenthesis."""
    tokenizer = ByteLevelTokenizer.from_pretrained(folder)
    return [tokenizer.encode(text)[0] for text in (" [", " ->", ")")]


def _shard(name: str) -> str:
    layer = re.search(r"\.h\.(\d+)\.", name)
    return f"model-{int(layer[1]):05}.safetensors" if layer else "model-others.safetensors"


def quantize(model: Path, target: Path, to: str) -> dict[str, float]:
    """Quantize in a process of its own; its seconds and peak memory."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as own:
        return own.submit(_quantize, model, target, to).result()


def _quantize(model: Path, target: Path, to: str) -> dict[str, float]:
    began = time.perf_counter()
    assert quantizing.main([str(model), "--to", to, "--out", str(target)]) == 0, "not quantized"
    return {"seconds": time.perf_counter() - began, "peak MiB": memory_mib("self", peak=True)}


async def serve(folder: Path, to: str, tokens: int) -> dict[str, Any]:
    """Start a gateway and ask it; what it took."""
    environment = {
        "TOOLFORMER_MODEL": str(folder),
        "TOOLFORMER_GATEWAY_DTYPE": to,
        "TOOLFORMER_GATEWAY_PORT": "0",
        "TOOLFORMER_GATEWAY_MAX_SEQUENCES": "8",
        "TOOLFORMER_GATEWAY_CACHE_MIB": str(CACHE_MIB),
        "TOOLFORMER_GATEWAY_COMPLETION_TIMEOUT": "3600",
        "TOOLFORMER_GATEWAY_DRAIN_SECONDS": "600",
    }
    figures: dict[str, Any] = {}
    began = time.perf_counter()
    async with (
        calculator(TOOL_SECONDS) as tool,
        started("inference_gateway", environment | {"TOOLFORMER_TOOL_CALCULATOR_URL": tool.url}) as gateway,
    ):
        figures["ready, s"] = time.perf_counter() - began
        figures["ready, peak MiB"] = memory_mib(gateway.process, peak=True)
        async with httpx.AsyncClient(base_url=gateway.url, timeout=3_600, trust_env=False) as http:

            async def ask(prompt: str | list[int], **fields: Any) -> dict[str, Any]:
                body = {"prompt": prompt, "max_tokens": tokens, "tools": ["Calculator"], "temperature": 0, **fields}
                response = await http.post("/v1/completions", json=body)
                assert response.status_code == 200, response.text
                answer: dict[str, Any] = response.json()
                return answer

            forced: dict[str, Any] = {"max_calls": 2, "frequency_penalty": 2, "max_tokens": 64}
            for streams in (1, 8):
                began = time.perf_counter()
                answers = await asyncio.gather(*(ask(f"Prompt {n}:", max_calls=0) for n in range(streams)))
                made = sum(answer["usage"]["completion_tokens"] for answer in answers)
                figures[f"{streams} streams, tokens/s"] = made / (time.perf_counter() - began)
            began = time.perf_counter()
            answers = await asyncio.gather(*(ask(f"Call {n}:", **forced) for n in range(8)))
            calls = [call for answer in answers for call in answer["choices"][0]["tool_calls"]]
            figures["calls answered"] = sum(call["output"] is not None for call in calls)
            figures["8 streams with calls, s"] = time.perf_counter() - began
            for what in ("resume", "inter_token"):
                counted = await scrape(gateway.url)
                seconds, times = (counted[f"{what}_latency_seconds_{part}"] for part in ("sum", "count"))
                figures[f"{what}, mean ms"] = 1_000 * seconds / times
            tokens_of_model = range(ByteLevelTokenizer.from_pretrained(folder).vocab_size)
            long = [random.Random(n).choices(tokens_of_model, k=LONG_PROMPT) for n in range(8)]
            began = time.perf_counter()
            answers = await asyncio.gather(*(ask(ids, max_calls=0, max_tokens=32) for ids in long))
            figures["8 long prompts, tokens"] = sum(answer["usage"]["prompt_tokens"] for answer in answers)
            figures["8 long prompts, s"] = time.perf_counter() - began
            figures["peak MiB with 8 long sequences"] = memory_mib(gateway.process, peak=True)
            leaving = asyncio.create_task(ask("A client that leaves", max_tokens=1_000, max_calls=0))
            await asyncio.sleep(2)
            leaving.cancel()
            began = time.perf_counter()
            while (await scrape(gateway.url))["num_requests_running"]:
                assert time.perf_counter() - began < 60, "a sequence is left running"
                await asyncio.sleep(0.01)
            figures["a client that left is let go after, s"] = time.perf_counter() - began
            counted = await scrape(gateway.url)
            figures["recomputed tokens"] = counted["recomputed_tokens_total"]
            figures["preemptions"] = counted["num_preemptions_total"]
            draining = asyncio.create_task(ask("Until the end", max_calls=0))
            await asyncio.sleep(1)
            os.kill(gateway.process, 15)
            figures["drained"] = (await draining)["choices"][0]["finish_reason"]
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scratch", type=Path, required=True, help="a folder with 30 GB of room")
    parser.add_argument("--to", choices=("int8", "int4"), default="int8")
    parser.add_argument("--tokenizer", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--layers", type=int, default=GPTJConfig().n_layer, help="fewer: proves the script")
    parser.add_argument("--keep", action="store_true", help="leave the checkpoint for another run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    model, target = options.scratch / "gpt-j-6b", options.scratch / f"gpt-j-6b-{options.to}"
    report: dict[str, Any] = {"to": options.to, "layers": options.layers}
    if not model.exists():
        began = time.perf_counter()
        make_checkpoint(model, options.tokenizer, GPTJConfig(**(asdict(GPTJConfig()) | {"n_layer": options.layers})))
        report["make"] = {"seconds": time.perf_counter() - began, "peak MiB": memory_mib("self", peak=True)}
    report["quantize"] = quantize(model, target, options.to)
    report["size MiB"] = sum(path.stat().st_size for path in target.rglob("*")) / 2**20
    report |= asyncio.run(serve(target, options.to, options.tokens))
    print(json.dumps(report, indent=2))
    if not options.keep:
        shutil.rmtree(model)
    shutil.rmtree(target)
    print(f"written to {write_report('gptj_6b', report, ('torch',), options.results)}")


if __name__ == "__main__":
    main()
