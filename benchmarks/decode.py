"""Decoding speed of the local engine beside transformers and CTranslate2 on the same weights, and the cost of a resume.

    python -m benchmarks.decode [--model models/gptj-tools] [--streams 1 8 32] [--threads 1 2] [--tokens 128]
    python -m benchmarks.decode --width 4096 --tokens 32      random weights at GPT-J-6B's width: see wide.py
    python -m benchmarks.decode --llama --tokens 64           random weights of Llama's shape: see llama.py

Each peer makes the same number of tokens from the same prompts, greedily, in float32; the peers take turns, and the
best round of each counts, with the number of threads that is best for it. transformers and CTranslate2 get all prompts
as one batch, the engine gets them as independent streams. What transformers makes of one stream is also its rate for
requests one by one, however many wait."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import llama, wide
from benchmarks.reports import RESULTS, write_report
from benchmarks.resume import resume_cost
from benchmarks.serving.gateway import endless
from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CompletionRequest, Finished
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.stats import StepTimes
from language_model import checkpoint
from language_model.native.step import NativeStep
from language_model.tokenizer import ByteLevelTokenizer

PEERS = ("engine", "ctranslate2", "transformers")
PROMPTS = (
    "Each of the 24 boxes holds 17 books, so together they hold",
    "Today is",
    "The population of Ljubljana is",
    "The train left the station in the morning and",
)


def prompts(tokenizer: ByteLevelTokenizer, streams: int) -> list[list[int]]:
    """One prompt a stream, all of the same number of tokens so that batches need no padding."""
    ids = [tokenizer.encode(text) for text in PROMPTS]
    length = max(map(len, ids))
    return [(ids[n % len(ids)] * length)[:length] for n in range(streams)]


async def engine_rate(backend: LocalBackend, batch: Sequence[list[int]], tokens: int) -> float:
    """Tokens per second of independent streams through the backend."""

    async def one(ids: list[int]) -> int:
        made = 0
        async for action in backend.open(CompletionRequest(tuple(ids), max_tokens=tokens), {}):
            if isinstance(action, Finished):
                made = action.usage.completion_tokens
        return made

    started = time.perf_counter()
    made = sum(await asyncio.gather(*(one(ids) for ids in batch)))
    assert made == tokens * len(batch)
    return made / (time.perf_counter() - started)


def transformers_rate(model: Any, batch: Sequence[list[int]], tokens: int) -> float:
    ids = torch.tensor(batch, device=model.device)
    started = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            pad_token_id=0,
        )
    assert out.shape == (len(batch), ids.shape[1] + tokens)
    return len(batch) * tokens / (time.perf_counter() - started)


def ctranslate2_rate(generator: Any, vocabulary: list[str], batch: Sequence[list[int]], tokens: int) -> float:
    start = [[vocabulary[token] for token in ids] for ids in batch]
    started = time.perf_counter()
    results = generator.generate_batch(
        start, beam_size=1, min_length=tokens, max_length=tokens, include_prompt_in_result=False, max_batch_size=0
    )
    seconds = time.perf_counter() - started
    made = sum(len(result.sequences_ids[0]) for result in results)
    assert made == tokens * len(batch), f"CTranslate2 made {made} tokens"
    return made / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of each peer, in ascending order")
    parser.add_argument("--torch", action="store_true", help="the engine's steps by torch, not in compiled code")
    parser.add_argument("--width", type=int, help="random weights of this width instead: 4096 is GPT-J-6B's (wide.py)")
    parser.add_argument("--layers", type=int, default=4, help="with --width: blocks of the model")
    parser.add_argument("--llama", action="store_true", help="100 million random weights of Llama's shape (llama.py)")
    parser.add_argument("--scratch", type=Path, help="a folder for checkpoints, 8 GB with --width 4096")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    name, measuring = "decode", measure
    if options.width:
        name, measuring = "decode-wide", wide.measure
    elif options.llama:
        name, measuring = "decode-llama", llama.measure
    report = asyncio.run(measuring(options))
    packages = ("torch", "transformers", "vllm" if find_spec("vllm") else "ctranslate2")
    print(f"\nwritten to {write_report(name, report, packages, options.results)}")


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    import ctranslate2
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    theirs = transformers.GPTJForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    ours = checkpoint.load(options.model)
    # Every stream makes all its tokens, as the peers must.
    backend = endless(LocalBackend(ours, tokenizer, "bench", EngineLimits(max_sequences=max(options.streams))))
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        converted = convert(options.model, Path(directory))
        words = json.loads((Path(converted) / "vocabulary.json").read_text())
        observed: list[StepTimes] = []
        backend.observe(observed.append)
        await backend.start()
        for threads in sorted(options.threads):
            torch.set_num_threads(threads)
            if not options.torch:
                ours.stepper = NativeStep.of(ours)
            generator = ctranslate2.Generator(
                converted, device="cpu", compute_type="float32", inter_threads=1, intra_threads=threads
            )
            for streams, _ in itertools.product(options.streams, range(options.rounds)):
                batch = prompts(tokenizer, streams)
                rates = {
                    "engine": await engine_rate(backend, batch, options.tokens),
                    "ctranslate2": ctranslate2_rate(generator, words, batch, options.tokens),
                    "transformers": transformers_rate(theirs, batch, options.tokens),
                }
                rounds.append({"threads": threads, "streams": streams, **rates})
            del generator  # one that lives on at exit can abort the process
        best = [best_of(rounds, streams) for streams in options.streams]
        show(best)
        resumes = []
        asking = CompletionRequest(tuple(tokenizer.encode(PROMPTS[0])), max_tokens=48, tools=("Calculator",))
        print(f"\n{'streams':>8} {'resume ms':>10} {'decode step ms':>15} {'resume in steps':>16}   p50")
        for streams in options.streams:
            cost = await resume_cost(backend, observed, asking, prompts(tokenizer, streams - 1), 30)
            resumes.append({"streams": streams, **cost})
            resume, step = cost["resume_ms_p50"], cost["decode_step_ms_p50"]
            print(f"{streams:>8} {resume:>10.2f} {step:>15.2f} {resume / step:>16.2f}")
        await backend.stop()
    return {
        "tokens_per_stream": options.tokens,
        "best": best,
        "rounds": rounds,
        "resume": resumes,
    }


def best_of(rounds: Sequence[dict[str, Any]], streams: int) -> dict[str, Any]:
    """Each peer's best round with that many streams, and the number of threads it had."""
    best: dict[str, Any] = {"streams": streams}
    for peer in PEERS:
        fastest = max((one for one in rounds if one["streams"] == streams), key=lambda one: float(one[peer]))
        best[peer], best[f"{peer}_threads"] = fastest[peer], fastest["threads"]
    return best


def show(best: Sequence[dict[str, Any]]) -> None:
    one_by_one = next((one["transformers"] for one in best if one["streams"] == 1), float("nan"))
    print(f"{'':>8}{'tokens/s (threads)':^47}   engine / CTranslate2, transformers, transformers one by one")
    print(f"{'streams':>8}" + "".join(f"{peer:>16}" for peer in PEERS))
    for row in best:
        rates = "".join(f"{row[peer]:>12.0f} ({row[f'{peer}_threads']})" for peer in PEERS)
        ratios = (row["engine"] / other for other in (row["ctranslate2"], row["transformers"], one_by_one))
        print(f"{row['streams']:>8}{rates}   " + ", ".join(f"{ratio:.2f}" for ratio in ratios))


def convert(model: Path, directory: Path) -> str:
    """The checkpoint in CTranslate2's format, float32."""
    from ctranslate2.converters import TransformersConverter

    return str(TransformersConverter(str(model)).convert(str(directory / "ct2"), quantization="float32"))


if __name__ == "__main__":
    main()
