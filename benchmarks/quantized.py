"""What weights of fewer bits cost: perplexity on held-out texts, and how many greedy choices stay the same.

    python -m benchmarks.quantized [--model models/gptj-tools] [--texts 400] [--completions 200] [--tokens 64]

A row's perplexity is over every token but the first of each text. Its greedy choices are made behind what float32 wrote
so far, so that one difference does not count again and again; its completions are its own."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.reports import RESULTS, write_report
from demo_world.suites import held_out_texts
from language_model.native.compiled import CompiledGPTJ
from language_model.native.packing import Weights
from language_model.native.quantized import pack_checkpoint
from language_model.tokenizer import ByteLevelTokenizer


def perplexity(model: CompiledGPTJ, texts: Sequence[Sequence[int]]) -> float:
    """``exp`` of the mean loss of a token that has one before it."""
    nats, tokens = 0.0, 0
    for ids in texts:
        logits = model.extend_every(model.new_cache(1), 0, ids[:-1])
        nats += float(torch.nn.functional.cross_entropy(logits, torch.tensor(ids[1:]), reduction="sum"))
        tokens += len(ids) - 1
    return math.exp(nats / tokens)


def greedy(model: CompiledGPTJ, prompt: Sequence[int], tokens: int) -> list[int]:
    """The likeliest token, again and again."""
    cache, made = model.new_cache(1), list(prompt)
    new = list(prompt)
    for _ in range(tokens):
        new = [int(model.extend(cache, [0], [new]).argmax())]
        made += new
    return made[len(prompt) :]


def same_choices(model: CompiledGPTJ, prompt: Sequence[int], made: Sequence[int]) -> int:
    """How often the likeliest token is that of ``made``, which stands behind ``prompt``."""
    logits = model.extend_every(model.new_cache(1), 0, [*prompt, *made[:-1]])
    chosen = logits[len(prompt) - 1 :].argmax(dim=-1).tolist()
    return sum(one == other for one, other in zip(chosen, made, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--completions", type=int, default=200)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    ids = [tokenizer.encode(text)[:256] for text in held_out_texts(max(options.texts, options.completions))]
    texts, prompts = [text for text in ids[: options.texts] if len(text) > 1], [text[:24] for text in ids]
    rows: list[dict[str, Any]] = []
    wanted: list[list[int]] = []
    print(f"{'weights':>9} {'perplexity':>11} {'more':>7} {'equal choices':>14} {'equal completions':>18}")
    for weights in Weights:
        model = CompiledGPTJ(pack_checkpoint(options.model, weights))
        found = perplexity(model, texts)
        made = [greedy(model, prompt, options.tokens) for prompt in prompts[: options.completions]]
        wanted = wanted or made
        choices = sum(same_choices(model, prompt, one) for prompt, one in zip(prompts, wanted, strict=False))
        row = {
            "weights": weights.name.lower(),
            "perplexity": found,
            "more": found / (rows[0]["perplexity"] if rows else found) - 1,
            "equal_choices": choices / sum(map(len, wanted)),
            "equal_completions": sum(one == other for one, other in zip(made, wanted, strict=True)) / len(wanted),
        }
        rows.append(row)
        print(
            f"{row['weights']:>9} {found:>11.4f} {row['more']:>7.2%} {row['equal_choices']:>14.1%}"
            f" {row['equal_completions']:>18.1%}"
        )
    report = {"texts": len(texts), "tokens": sum(map(len, texts)), "completions": options.completions, "rows": rows}
    print(f"\nwritten to {write_report('quantized', report, ('torch',), options.results)}")


if __name__ == "__main__":
    main()
