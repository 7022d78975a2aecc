"""What calling a tool before the arrow gains: how long completions wait for it, with and without.

    python -m benchmarks.early_dispatch [--model models/gptj-tools] [--calls 60] [--tool-ms 20] [--streams 1 8]

The tool is a pause in this process, so that nothing but the overlap is measured. Both ways take turns."""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import statistics
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import torch

from inference_gateway.backends.local import LocalBackend
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, CompletionRequest
from inference_gateway.engine.limits import EngineLimits
from toolformer.tool_client import ToolResult
from toolformer.tools import ToolRegistry


class Pausing:
    """A tool that answers 408 after a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def call(
        self,
        name: str,
        input: str,
        *,
        date: dt.date | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        await asyncio.sleep(self._seconds)
        return ToolResult(name, input, "408", None, 1000 * self._seconds, 1)


async def measure(options: argparse.Namespace) -> None:
    backend = LocalBackend.load(options.model, limits=EngineLimits())
    outcomes: Counter[str] = Counter()
    completer = Completer(
        backend,
        ToolRegistry.load(files=[], environ={}),
        Pausing(options.tool_ms / 1000),
        saw_early=lambda tool, outcome: outcomes.update([outcome]),
    )
    await backend.start()

    async def one(number: int, early: bool) -> list[float]:
        prompt = f"Each of the {number % 80 + 11} trucks carries {number % 13 + 12} boxes, so the fleet carries"
        ids = tuple(backend.tokenizer.encode(prompt))
        request = CompletionRequest(ids, max_tokens=32, tools=("Calculator",), early_dispatch=early)
        events = [event async for event in completer.stream(request)]
        return [event.record.duration_ms for event in events if isinstance(event, CallFinished)]

    for streams in options.streams:
        waited: dict[bool, list[float]] = {False: [], True: []}
        outcomes.clear()
        for first in range(0, options.calls, streams):
            for early in (False, True):
                together = await asyncio.gather(*(one(first + n, early) for n in range(streams)))
                waited[early] += [ms for of_one in together for ms in of_one]
        late, soon = (statistics.median(waited[early]) for early in (False, True))
        print(
            f"{streams} streams, tool {options.tool_ms:g} ms: waited {late:.2f} ms ({len(waited[False])} calls), "
            f"early {soon:.2f} ms ({len(waited[True])} calls): {late - soon:.2f} ms gained; {dict(outcomes)}"
        )
    await backend.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--tool-ms", type=float, default=20)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8])
    options = parser.parse_args()
    torch.set_num_threads(1)
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()
