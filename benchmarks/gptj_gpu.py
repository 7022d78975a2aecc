"""GPT-J-6B's shape with random weights on a GPU: decoding beside what the memory's bandwidth allows and beside
transformers, and a resume beside computing everything again.

    python -m benchmarks.gptj_gpu [--device cuda] [--dtype bfloat16] [--streams 32] [--tokens 128]
    python -m benchmarks.gptj_gpu --device cpu --dtype float32 --shape small     proves the script, measures nothing

- Decoding: independent greedy streams through the local engine, each with its decoding machine. A step must read all
  weights but the embedding once and the cache of its rows; that, over the bandwidth that copying a large tensor
  reaches here, is what memory allows.
- transformers: `GPTJForCausalLM.generate` with eager attention on weights of the same shape, all prompts as one batch.
- Resume: the four tokens of a result behind a context that the cache kept, until their logits are there, beside the
  whole context computed again, in one piece and in the engine's pieces. Medians.

transformers' part runs last, without the engine's weights, so one copy must fit: 12.1 GB, the cache besides."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from benchmarks.devices import DTYPES, SHAPES, card, check_device, settle, transformers_config
from benchmarks.peers import batch_of, quiet_transformers, rate, streams_of
from benchmarks.reports import RESULTS, write_report
from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from language_model.config import GPTJConfig
from language_model.gptj import GPTJ
from language_model.graphs import DecodeGraphs
from tests.support.vocabularies import small_tokenizer

CONTEXTS: Final = (256, 1_024, 2_000)
RESULT_TOKENS: Final = 4
PROMPT_TOKENS: Final = 32
REPEATS: Final = 10
ROOM: Final = 512
"""Tokens that a stream may have: 32 rows of the model's 2,048 would take 30 GB."""


async def our_rate(model: GPTJ, streams: int, tokens: int) -> float:
    """Tokens per second of ``streams`` streams, the second time: what is done once is done by then."""
    length = min(ROOM, model.max_positions)
    limits = EngineLimits(max_sequences=streams, max_model_len=length, reuse_prefixes=False)
    backend = LocalBackend(model, small_tokenizer(), "bench", limits)
    await backend.start()
    batch = [prompt(model.config, number) for number in range(streams)]
    rates = [await rate(streams_of(backend), batch, tokens) for _ in range(2)]
    await backend.stop()
    return rates[-1]


def prompt(config: GPTJConfig, number: int) -> list[int]:
    generator = torch.Generator().manual_seed(number)
    return torch.randint(config.vocab_size, (PROMPT_TOKENS,), generator=generator).tolist()


def bandwidth(device: torch.device) -> float:
    """Bytes per second that a copy reads and writes; the best of some."""
    size = 2**30 if device.type == "cuda" else 2**26
    source, target = (torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2))
    return 2 * size / min(timed(lambda: target.copy_(source), device) for _ in range(REPEATS))


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of ``work``, with all that it starts on the device."""
    settle(device)
    started = time.perf_counter()
    work()
    settle(device)
    return time.perf_counter() - started


def bytes_of_a_step(model: GPTJ, streams: int, tokens: int) -> float:
    """What the mean step of a run must read."""
    weights = sum(one.nbytes for one in model.parameters()) - model.wte.weight.nbytes
    return weights + streams * (PROMPT_TOKENS + tokens / 2) * model.cache_bytes_per_token


def resume_cost(model: GPTJ, context: int, piece: int) -> dict[str, Any]:
    """Milliseconds of one decode step and of a resume behind ``context`` tokens, and of computing it all again."""
    ids = torch.randint(model.config.vocab_size, (context + RESULT_TOKENS,), generator=torch.Generator().manual_seed(0))
    kept, result = ids[:context].tolist(), ids[context:].tolist()
    cache = model.new_cache(1)

    def once(tokens: Sequence[int], held: int, step: int) -> float:
        cache.cut(0, held)
        pieces = [tokens[start : start + step] for start in range(0, len(tokens), step)]
        return 1_000 * timed(lambda: [model.extend(cache, [0], [one]) for one in pieces][-1].argmax().item(), device)

    device = model.device
    model.extend(cache, [0], [kept])
    ways = {
        "decode step": (kept[-1:], context - 1, 1),
        "resume": (result, context, RESULT_TOKENS),
        "again, one piece": ([*kept, *result], 0, context + RESULT_TOKENS),
        f"again, {piece} at a time": ([*kept, *result], 0, piece),
    }
    medians: dict[str, Any] = {"context": context}
    for name, (tokens, held, step) in ways.items():
        once(tokens, held, step)
        medians[name] = statistics.median(once(tokens, held, step) for _ in range(REPEATS))
    return medians


def transformers_model(config: GPTJConfig, dtype: torch.dtype, device: torch.device) -> Any:
    import transformers

    quiet_transformers()
    with device:
        model = transformers.GPTJForCausalLM._from_config(
            transformers_config(config), dtype=dtype, attn_implementation="eager"
        )
    return model.eval()


def measure(options: argparse.Namespace) -> dict[str, Any]:
    device, config, dtype = torch.device(options.device), SHAPES[options.shape], DTYPES[options.dtype]
    print(f"{dt.date.today()}, {card(options.device)}, {options.shape} in {options.dtype}, torch {torch.__version__}\n")
    with torch.inference_mode():
        model = GPTJ.from_config(config, dtype=dtype, device=device).eval().requires_grad_(False)
        model.stepper = graphs = DecodeGraphs(model)
        copied = bandwidth(device)
        print(f"a copy moves {copied / 1e9:,.0f} GB/s\n")
        print(f"{'streams':>8} {'tokens/s':>10} {'memory allows':>14} {'share':>6}")
        decoding = []
        for streams in sorted({1, options.streams}):
            ours = asyncio.run(our_rate(model, streams, options.tokens))
            allowed = streams * copied / bytes_of_a_step(model, streams, options.tokens)
            decoding.append({"streams": streams, "tokens a second": ours, "memory allows": allowed})
            print(f"{streams:>8} {ours:>10,.0f} {allowed:>14,.0f} {ours / allowed:>6.0%}")
        resumes = []
        for context in options.contexts or [one for one in CONTEXTS if one + RESULT_TOKENS <= config.n_positions]:
            resumes.append(resume_cost(model, context, EngineLimits().prefill_tokens))
            if len(resumes) == 1:
                print("\n" + "".join(f"{name:>24}" for name in resumes[0]) + "    ms")
            print("".join(f"{value:>24,.2f}" for value in resumes[-1].values()))
        recorded = graphs.on_gpu and not graphs.failed
        del model
        gc.collect()
        torch.cuda.empty_cache()  # does nothing where there is no GPU
        theirs = transformers_model(config, dtype, device)
        batch = [prompt(config, number) for number in range(options.streams)]
        rates = []
        for _ in range(2):
            settle(device)
            rates.append(asyncio.run(rate(batch_of(theirs), batch, options.tokens)))
        print(
            f"\ntransformers generate, {options.streams} as one batch: {max(rates):,.0f} tokens/s; "
            f"engine / transformers {ours / max(rates):.2f}"
        )
    return {
        "card": card(options.device),
        "shape": options.shape,
        "dtype": options.dtype,
        "tokens a stream": options.tokens,
        "steps replayed": recorded,
        "bytes a second of a copy": copied,
        "decoding": decoding,
        "resume": resumes,
        "transformers": {"streams": options.streams, "tokens a second": max(rates)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bfloat16")
    parser.add_argument("--shape", choices=sorted(SHAPES), default="gptj-6b")
    parser.add_argument("--streams", type=int, default=32, help="of the row that is compared with transformers")
    parser.add_argument("--tokens", type=int, default=128, help="that each stream makes")
    parser.add_argument("--contexts", type=int, nargs="*", help="tokens before a resume")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    check_device(parser, options.device, options.shape)
    room = min(ROOM, SHAPES[options.shape].n_positions)
    if (needed := PROMPT_TOKENS + options.tokens) > room:
        parser.error(f"--tokens: {needed} tokens with the prompt do not fit the {room} of a stream; ask for fewer")
    report = measure(options)
    print(f"\nwritten to {write_report('gptj_gpu', report, ('torch', 'transformers'), options.results)}")


if __name__ == "__main__":
    main()
