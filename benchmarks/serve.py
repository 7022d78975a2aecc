"""The gateway under load beside the other ways to serve tool calls: latencies, rates, recomputed tokens, memory.

    python -m benchmarks.serve [--ways pause resubmit] [--concurrency 32] [--tool-ms 0 200]

`pause` is the gateway as it is. `resubmit` lets the request end at the arrow, calls the tool and submits the whole text
again, to the same gateway. The gateway is a process of its own with the bundled model in float32; the stand-in for the
tool and the clients are this one. The ways take turns, each time with other prompts; the round with the most requests a
second counts."""

from __future__ import annotations

import argparse
import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.processes import Service
from benchmarks.reports import RESULTS, memory_mib, write_report
from benchmarks.serving.figures import figures
from benchmarks.serving.gateway import endless_gateway
from benchmarks.serving.load import Load, Way, drive
from benchmarks.serving.metrics import Account
from benchmarks.serving.stream import Connections
from benchmarks.serving.tools import calculator
from benchmarks.serving.ways import TOOL, Pause, Resubmit, Tools
from language_model.tokenizer import ByteLevelTokenizer

WAYS = ("pause", "resubmit")
PACKAGES = ("fastapi", "uvicorn", "httpx", "torch")
_COLUMNS = ("request_ms", "first_token_ms", "between_tokens_ms", "resume_ms")

Row = dict[str, Any]


async def measure(way: Way, gateway: Service, load: Load) -> Row:
    """The figures of ``load``."""
    before = await Account.of(gateway)
    row = figures(await drive(way, load))
    after = await Account.of(gateway)
    row["called_share"] = round(row["calls"] / load.requests, 3)
    row["processor_ms_per_request"] = round(1_000 * (after.processor - before.processor) / load.requests, 1)
    row["resident_mib"] = memory_mib(gateway.process)
    row["dropped_pauses"] = after.since(before, "dropped_pauses_total")
    recomputed = after.since(before, "recomputed_tokens_total") / max(1, row["calls"])
    row["recomputed_per_call"] = round(row.get("recomputed_per_call", 0.0) + recomputed, 2)
    step, resume = (after.mean(before, f"{name}_latency_seconds") for name in ("inter_token", "resume"))
    if step is not None:
        row["step_ms"] = round(1_000 * step, 3)
    if step and resume is not None:
        row["mean_resume_in_steps"] = round(resume / step, 2)
    return row


async def run(options: argparse.Namespace) -> list[Row]:
    """A row for each way, tool and concurrency."""
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    seeds = itertools.count(options.seed)
    rows: list[Row] = []
    settings: dict[str, object] = {"max_sequences": options.max_sequences}
    if options.threads:
        settings["torch_threads"] = options.threads
    async with (
        calculator() as tool,
        Tools.at(tool.url, tokenizer) as tools,
        endless_gateway(options.model, {TOOL: tool.url}, **settings) as gateway,
        Connections(gateway.url) as connections,
    ):
        ways: dict[str, Way] = {"pause": Pause(connections), "resubmit": Resubmit(connections, tools)}
        for tool_ms, concurrency in itertools.product(options.tool_ms, options.concurrency):
            tool.seconds = tool_ms / 1_000
            load = Load(options.requests or 6 * concurrency, concurrency, options.tokens)
            best: dict[str, Row] = {}
            for _, name in itertools.product(range(options.rounds), options.ways):
                row = await measure(ways[name], gateway, replace(load, seed=next(seeds)))
                if name not in best or row["requests_per_s"] > best[name]["requests_per_s"]:
                    best[name] = {"way": name, "tool_ms": tool_ms, "concurrency": concurrency, **row}
            for row in best.values():
                show(row)
            rows += best.values()
    return rows


def show(row: Row) -> None:
    """Print a row."""

    def of(name: str) -> str:
        return "/".join(f"{value:.4g}" for value in row[name].values()) if name in row else "-"

    times = "  ".join(f"{name.removesuffix('_ms').replace('_', ' ')} {of(name)}" for name in _COLUMNS)
    tool = f"{row['concurrency']} at once, tool {row['tool_ms']:g} ms"
    print(f"{row['way']}, {tool}: {row['requests_per_s']:g} requests/s, {row['tokens_per_s']:g} tokens/s")
    print(f"    ms p50/p95/p99: {times}")
    others = ("recomputed_per_call", "called_share", "mean_resume_in_steps", "processor_ms_per_request", "resident_mib")
    print("    " + ", ".join(f"{name.replace('_', ' ')} {row[name]}" for name in others if name in row), flush=True)


def comparisons(rows: Sequence[Row]) -> dict[str, float]:
    """Tokens a second while slow tools work, to those with instant ones."""
    found: dict[str, float] = {}
    for slow, instant in itertools.product(rows, rows):
        same = (slow["way"], slow["concurrency"]) == (instant["way"], instant["concurrency"])
        if same and slow["tool_ms"] > instant["tool_ms"] == 0 and "tokens_per_s_in_calls" in slow:
            name = (
                f"{slow['way']}, {slow['concurrency']} at once: tokens/s in calls of {slow['tool_ms']:g} ms to instant"
            )
            found[name] = round(slow["tokens_per_s_in_calls"] / instant["tokens_per_s"], 3)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table and writes benchmarks/results/serve.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--concurrency", type=int, nargs="+", default=[32], help="requests under way at most")
    parser.add_argument("--tool-ms", type=float, nargs="+", default=[200.0], help="what a call takes")
    parser.add_argument("--requests", type=int, help="of a round; by default six for each that may be under way")
    parser.add_argument("--tokens", type=int, default=128, help="of a request on average: half to one and a half times")
    parser.add_argument("--max-sequences", type=int, default=64, help="that the gateway decodes at once")
    parser.add_argument("--threads", type=int, help="of a step of the gateway")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    rows = asyncio.run(run(options))
    ratios = comparisons(rows)
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:g}")
    asked = {name: value for name, value in vars(options).items() if name not in ("results", "model")}
    report = {"asked": asked, "rows": rows, "ratios": ratios}
    print(f"written to {write_report('serve', report, PACKAGES, options.results)}")


if __name__ == "__main__":
    main()
