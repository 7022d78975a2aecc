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
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from benchmarks import llama, peers, wide
from benchmarks.reports import RESULTS, write_report
from benchmarks.resume import resume_cost
from benchmarks.serving.gateway import endless
from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CompletionRequest
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.engine.stats import StepTimes
from language_model import checkpoint
from language_model.native.step import NativeStep
from language_model.tokenizer import ByteLevelTokenizer

PEERS = ("engine", "ctranslate2", "transformers")
PROMPTS = (
    "Each of 24 boxes holds 17 books. How many books are there altogether? The answer is",
    "Today is",
    "The population of Ljubljana is",
    "The train left the station in the morning and",
)


def prompts(tokenizer: ByteLevelTokenizer, streams: int) -> list[list[int]]:
    """One prompt a stream, all of the same number of tokens so that batches need no padding."""
    ids = [tokenizer.encode(text) for text in PROMPTS]
    length = max(map(len, ids))
    return [(ids[n % len(ids)] * length)[:length] for n in range(streams)]


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
    import transformers

    peers.quiet_transformers()
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    theirs = transformers.GPTJForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    ours = checkpoint.load(options.model)
    # Every stream makes all its tokens, as the peers must.
    backend = endless(LocalBackend(ours, tokenizer, "bench", EngineLimits(max_sequences=max(options.streams))))
    rounds: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as directory:
        converted = peers.convert(options.model, Path(directory), "float32")
        observed: list[StepTimes] = []
        backend.observe(observed.append)
        await backend.start()
        for threads in sorted(options.threads):
            torch.set_num_threads(threads)
            if not options.torch:
                ours.stepper = NativeStep.of(ours)
            makers = {
                "engine": peers.streams_of(backend),
                "ctranslate2": peers.ctranslate2_of(converted, "float32", threads),
                "transformers": peers.batch_of(theirs),
            }
            for streams, _ in itertools.product(options.streams, range(options.rounds)):
                batch = prompts(tokenizer, streams)
                rates = {name: await peers.rate(make, batch, options.tokens) for name, make in makers.items()}
                rounds.append({"threads": threads, "streams": streams, **rates})
            del makers  # CTranslate2's must not live on at exit
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


if __name__ == "__main__":
    main()
