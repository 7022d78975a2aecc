"""A soak: thousands of completions with clients that leave, tools that fail and too little cache; then the bill.

    python -m benchmarks.soak [--completions 10000] [--concurrency 32] [--seed 0]

The gateway is a process of its own with the bundled model, as ``python -m inference_gateway`` starts it, with a cache
that two of the longest requests do not fit into. A fifth of the clients leave: at once, in the middle of a stream,
during a call, with or without a farewell. The calls of a third of the requests are slow, refused, answered with errors
or with nonsense, or not at all. It exits with 1 unless each completion had exactly one end or a client that left, none
hung, equal requests got equal texts, everything held was freed and memory stayed flat."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import Service, started
from benchmarks.reports import RESULTS, memory_mib, write_report
from benchmarks.serving.metrics import Account
from benchmarks.serving.stream import Connections
from benchmarks.serving.tools import failing
from benchmarks.soaking.client import Client, Tally
from benchmarks.soaking.watch import freed, middle_and_end, open_files
from benchmarks.soaking.wishes import Wishes

PACKAGES = ("fastapi", "uvicorn", "httpx", "torch")
REASONS: Final = ("stop", "length", "timeout", "error", "cancelled", "refused")
PRESSURE: Final = ("num_preemptions_total", "dropped_pauses_total", "recomputed_tokens_total")
"""What must have happened for the soak to be worth anything."""
_SETTINGS: Final = {
    "PORT": 0,
    "MAX_SEQUENCES": 16,
    "CACHE_MIB": 24,  # of the bundled model, one longest text
    "HOLD_SECONDS": 0.3,
    "EARLY_DISPATCH": True,
    "LOG_LEVEL": "INFO",
}
_TOOLS: Final = ("Calculator", "Calendar")
_MOST_GROWTH: Final = 0.05
_SPARE_FILES: Final = 72
"""More open files afterwards than before: the tool client keeps up to 64 idle connections."""
_ENOUGH_FOR_MEMORY: Final = 2_000
"""Completions from which on growth of memory differs from the filling of caches."""


async def soak(options: argparse.Namespace) -> dict[str, Any]:
    """The report; ``faults`` in it is empty if all went well."""
    async with contextlib.AsyncExitStack() as stack:
        urls = {tool: await stack.enter_async_context(failing(tool)) for tool in _TOOLS}
        environment = {f"TOOLFORMER_TOOL_{tool.upper()}_URL": url for tool, url in urls.items()}
        environment |= {f"TOOLFORMER_GATEWAY_{name}": str(value) for name, value in _SETTINGS.items()}
        environment |= {"TOOLFORMER_MODEL": str(options.model), "TOOLFORMER_CACHE_SIZE": "64"}
        gateway = await stack.enter_async_context(started("inference_gateway", environment))
        before, files = await Account.of(gateway), open_files(gateway.process)
        began = time.perf_counter()
        tally, memory = await ask_for_all(gateway, options)
        seconds = time.perf_counter() - began
        held, after = await freed(gateway), await Account.of(gateway)
        report = {
            "asked": {name: getattr(options, name) for name in ("completions", "concurrency", "seed")},
            "seconds": round(seconds, 1),
            "completions": tally.sent,
            "answered": tally.answered,
            "outcomes": dict(sorted(tally.outcomes.items())),
            "calls": dict(tally.calls.most_common()),
            "pressure": {name: after.since(before, name) for name in PRESSURE},
            "processor_seconds": round(after.processor - before.processor, 1),
            "held": held,
            "open_files": [files, open_files(gateway.process)],
            "server": {reason: after.samples.get(_ended(reason), 0.0) for reason in REASONS},
        }
        with contextlib.suppress(ValueError):
            report["memory_mib"] = dict(zip(("middle", "end"), middle_and_end(memory), strict=True))
        report["faults"] = [*tally.faults, *found(report, tally)]
        return report


async def ask_for_all(gateway: Service, options: argparse.Namespace) -> tuple[Tally, list[tuple[int, float]]]:
    """Have clients ask until as many completions are sent as were asked for, or the time is over; and the gateway's
    memory in MiB behind each."""
    tally, wishes, numbers = Tally(), Wishes(options.seed), itertools.count()
    end = time.monotonic() + 60 * options.minutes
    memory: list[tuple[int, float]] = []
    async with Connections(gateway.url) as connections:
        client = Client(gateway.url, connections, tally)

        async def asking() -> None:
            while tally.sent < options.completions and time.monotonic() < end:
                await client.ask(wishes.wish(next(numbers)))
                memory.append((tally.sent, memory_mib(gateway.process)))

        async with asyncio.TaskGroup() as tasks:
            for _ in range(options.concurrency):
                tasks.create_task(asking())
    return tally, memory


def found(report: dict[str, Any], tally: Tally) -> list[str]:
    """What is wrong with the gateway's bill."""
    wrong = [f"{name} is {value:g} when nobody is served" for name, value in report["held"].items() if value]
    wrong += [
        f"nothing was counted under {name}: the load was too light" for name in PRESSURE if not report["pressure"][name]
    ]
    wrong += [
        f"{name}: equal requests got {len(texts)} texts: {dict(texts)}"
        for name, texts in tally.texts.items()
        if len(texts) > 1
    ]
    ends = report["server"]
    ended = ends["stop"] + ends["length"] + ends["timeout"]
    if ends["error"]:
        wrong.append(f"{ends['error']:g} completions ended with an error; the gateway's log has the cause")
    if ended < tally.answered or sum(ends.values()) > tally.sent:
        wrong.append(f"the gateway counts {ends} ends of {tally.sent} completions, {tally.answered} of them answered")
    first, last = report["open_files"]
    if last > first + _SPARE_FILES:
        wrong.append(f"{first} files were open before, {last} afterwards")
    if tally.sent >= _ENOUGH_FOR_MEMORY:
        memory = report["memory_mib"]
        if memory["end"] > memory["middle"] * (1 + _MOST_GROWTH):
            wrong.append(f"memory grew from {memory['middle']:g} to {memory['end']:g} MiB")
    return wrong


def _ended(reason: str) -> str:
    return f'completions_total{{finish_reason="{reason}"}}'


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the bill, writes benchmarks/results/soak.json, and exits with 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--completions", type=int, default=10_000)
    parser.add_argument("--concurrency", type=int, default=32, help="requests under way at once")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="to stop asking after, however many came")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    report = asyncio.run(soak(options))
    for name, value in report.items():
        if name != "faults":
            print(f"{name}: {value}")
    print(f"written to {write_report('soak', report, PACKAGES, options.results)}")
    for fault in report["faults"]:
        print(fault)
    sys.exit(1 if report["faults"] else 0)


if __name__ == "__main__":
    main()
