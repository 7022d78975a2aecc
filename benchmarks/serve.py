"""The gateway under load beside the other ways to serve tool calls: latencies, rates, recomputed tokens, memory.

    python -m benchmarks.serve [--ways pause resubmit] [--concurrency 32] [--tool-ms 0 200] [--context 0] [--calls 1]

`pause` is the gateway as it is. `resubmit` lets the request end at the arrow, calls the tool and submits the whole text
again, to the same gateway; `resubmit-no-reuse` to one that reuses no prefixes. The gateways are processes of their own
with the bundled model in float32; the stand-in for the tool and the clients are this one. The ways take turns, each
time with other prompts; the round with the most requests a second counts."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.processes import Service
from benchmarks.reports import RESULTS, resident_mb, write_report
from benchmarks.serving.driver import drive
from benchmarks.serving.figures import Point, figures, rate_at
from benchmarks.serving.gateway import endless_gateway
from benchmarks.serving.load import Load, jobs
from benchmarks.serving.metrics import Account
from benchmarks.serving.stream import Connections
from benchmarks.serving.tool import calculator
from benchmarks.serving.ways import TOOL, Pause, Resubmit, Tools, Way
from language_model.tokenizer import ByteLevelTokenizer

WAYS = ("pause", "resubmit", "resubmit-no-reuse")
PACKAGES = ("fastapi", "uvicorn", "httpx", "torch")
_COLUMNS = ("request_ms", "first_token_ms", "between_tokens_ms", "resume_ms")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Served:
    """A way, and the gateway behind it."""

    way: Way
    gateway: Service

    async def measure(self, load: Load, tokenizer: ByteLevelTokenizer) -> Row:
        """The figures of ``load``."""
        planned = jobs(load, tokenizer)
        before = await Account.of(self.gateway)
        driven = await drive(self.way, load, planned)
        row = figures(driven)
        if wanted := sum(job.calls for job in planned):
            row["called_share"] = round(row["calls"] / wanted, 3)
        after = await Account.of(self.gateway)
        row["processor_ms_per_request"] = round(1_000 * (after.processor - before.processor) / load.requests, 1)
        row["resident_mib"] = resident_mb(self.gateway.process)
        row["dropped_pauses"] = after.since(before, "dropped_pauses_total")
        recomputed = after.since(before, "recomputed_tokens_total") / max(1, row["calls"])
        row["recomputed_per_call"] = round(row.get("recomputed_per_call", 0.0) + recomputed, 2)
        step, resume = (after.mean(before, f"{name}_latency_seconds") for name in ("inter_token", "resume"))
        if step is not None:
            row["step_ms"] = round(1_000 * step, 3)
        if step and resume is not None:
            row["mean_resume_in_steps"] = round(resume / step, 2)
        return row


@contextlib.asynccontextmanager
async def served(
    options: argparse.Namespace, tool: str, tokenizer: ByteLevelTokenizer
) -> AsyncIterator[dict[str, Served]]:
    """The ways that were asked for, with the tool at that address."""
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        tools = await enter(Tools.at(tool, tokenizer))
        settings: dict[str, object] = {"max_sequences": options.max_sequences}
        if options.threads:
            settings["torch_threads"] = options.threads

        async def gateway(**others: object) -> tuple[Service, Connections]:
            service = await enter(endless_gateway(options.model, {TOOL: tool}, **settings, **others))
            return service, await enter(Connections(service.url))

        ways: dict[str, Served] = {}
        if {"pause", "resubmit"} & set(options.ways):
            service, connections = await gateway()
            ways["pause"] = Served(Pause(connections), service)
            ways["resubmit"] = Served(Resubmit(connections, tools), service)
        if "resubmit-no-reuse" in options.ways:
            service, connections = await gateway(reuse_prefixes=False)
            ways["resubmit-no-reuse"] = Served(Resubmit(connections, tools), service)
        yield {name: ways[name] for name in options.ways}


async def run(options: argparse.Namespace) -> list[Row]:
    """A row for each way, tool and concurrency."""
    tokenizer = ByteLevelTokenizer.from_pretrained(options.model)
    seeds = itertools.count(options.seed)
    rows: list[Row] = []
    async with contextlib.AsyncExitStack() as stack:
        stand_in = await stack.enter_async_context(calculator())
        ways = await stack.enter_async_context(served(options, stand_in.url, tokenizer))
        for tool_ms, concurrency in itertools.product(options.tool_ms, options.concurrency):
            stand_in.seconds = tool_ms / 1_000
            load = Load(
                requests=options.requests or 6 * concurrency,
                concurrency=concurrency,
                call_share=options.calls,
                tokens=options.tokens,
                context=options.context,
            )
            best: dict[str, Row] = {}
            for _, (name, one) in itertools.product(range(options.rounds), ways.items()):
                row = await one.measure(replace(load, seed=next(seeds)), tokenizer)
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
    """Ratios between the rows: slow tools to instant ones, pausing to the other ways at their 95th percentile."""
    found: dict[str, float] = {}
    for slow, instant in itertools.product(rows, rows):
        same = (slow["way"], slow["concurrency"]) == (instant["way"], instant["concurrency"])
        if same and slow["tool_ms"] > instant["tool_ms"] == 0 and "tokens_per_s_in_calls" in slow:
            name = (
                f"{slow['way']}, {slow['concurrency']} at once: tokens/s in calls of {slow['tool_ms']:g} ms to instant"
            )
            found[name] = round(slow["tokens_per_s_in_calls"] / instant["tokens_per_s"], 3)
    for tool_ms in dict.fromkeys(row["tool_ms"] for row in rows):
        curve = [_point(row) for row in rows if row["way"] == "pause" and row["tool_ms"] == tool_ms]
        for row in rows:
            if row["way"] != "pause" and row["tool_ms"] == tool_ms and (ours := rate_at(curve, _point(row).p95)):
                name = (
                    f"pause to {row['way']} at its p95, {row['concurrency']} at once, tool {tool_ms:g} ms: requests/s"
                )
                found[name] = round(ours / row["requests_per_s"], 2)
    return found


def _point(row: Mapping[str, Any]) -> Point:
    return Point(row["requests_per_s"], row["request_ms"]["p95"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table and writes benchmarks/results/serve.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["pause", "resubmit", "resubmit-no-reuse"])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[32], help="requests under way at most")
    parser.add_argument("--calls", type=float, default=1.0, help="share of the requests that call the tool")
    parser.add_argument("--tool-ms", type=float, nargs="+", default=[200.0], help="what a call takes")
    parser.add_argument("--requests", type=int, help="of a round; by default six for each that may be under way")
    parser.add_argument("--tokens", type=int, default=128, help="of a request on average: half to one and a half times")
    parser.add_argument("--context", type=int, default=0, help="tokens of text before each prompt")
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
