"""Completions with calls on vLLM in two ways: paused inside it, and as requests in front of a server.

    .venv/vllm/bin/python -m benchmarks.vllm_pauses [--prompts 250] [--at-once 8] [--tool-ms 0] [--rounds 2]

`inside` is the backend that is vLLM; `in front` is the `openai` backend and a `vllm serve` of the same model with the
same arguments; `local` is the local engine. The ways take turns over the same prompts: two in five word problems, two
in five dates, one in five facts, whose tool fails. The faster round of each counts. `make test-vllm` makes the
environment."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime as dt
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.processes import SECONDS
from benchmarks.reports import RESULTS, percentiles, write_report
from demo_world.suites import items
from inference_gateway.backends.base import Backend
from inference_gateway.backends.loading import backend_loader, end_ids
from inference_gateway.completion import Completer
from inference_gateway.core import CallFinished, CompletionRequest, Finished, TextDelta
from inference_gateway.settings import GatewaySettings
from language_model.tokenizer import ByteLevelTokenizer
from services.calculator.engine import CalculatorError, calculate
from toolformer.tool_client import ToolError, ToolResult
from toolformer.tools import ToolRegistry

WAYS: Final = ("inside", "in front", "local")
PACKAGES: Final = ("torch", "transformers", "vllm")
_SUITES: Final = {"word problems": 2, "dates": 2, "facts": 1}
"""Shares of the prompts."""


@dataclass(frozen=True, slots=True)
class SlowTools:
    """Calculator and calendar, each answering after ``seconds``; all other tools fail."""

    seconds: float

    async def call(
        self,
        name: str,
        input: str,
        *,
        date: dt.date | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the client's signature
        headers: Mapping[str, str] | None = None,
    ) -> ToolResult:
        await asyncio.sleep(self.seconds)
        output = None
        if name == "Calendar":
            output = "Today is Monday, November 23, 2026."
        elif name == "Calculator":
            with contextlib.suppress(CalculatorError):
                output = calculate(input)
        error = None if output is not None else ToolError("unavailable", "no answer")
        return ToolResult(name, input, output, error, 0.0, 1)


def prompts(count: int) -> list[str]:
    """``count`` beginnings of texts of the demo world."""
    texts = []
    for suite, share in _SUITES.items():
        wanted = count * share // sum(_SUITES.values())
        drawn = [item for part in items(suite, count=-(-wanted // 2)).values() for item in part]
        texts += [f"{item.context} {item.bare}".strip() for item in drawn[:wanted]]
    return texts


async def complete(completer: Completer, text: str) -> tuple[float, Any]:
    """Seconds of a completion, and what came of it."""
    began = time.perf_counter()
    request = CompletionRequest(
        tuple(completer.backend.tokenizer.encode(text)), max_tokens=48, tools=tuple(completer.registry.names())
    )
    shown, calls, end = "", [], ""
    async for event in completer.stream(request):
        match event:
            case TextDelta(text=more):
                shown += more
            case CallFinished(record):
                calls.append((record.tool, record.input, record.output))
            case Finished(reason=reason):
                end = reason
    return time.perf_counter() - began, (shown, calls, end)


async def measure(backend: Backend, texts: Sequence[str], options: argparse.Namespace) -> tuple[dict[str, Any], Any]:
    """Figures of one round, and what came of each prompt."""
    completer = Completer(backend, ToolRegistry.load(files=[], environ={}), SlowTools(options.tool_ms / 1_000))
    gate = asyncio.Semaphore(options.at_once)

    async def one(text: str) -> tuple[float, Any]:
        async with gate:
            return await complete(completer, text)

    before, began = backend.stats(), time.perf_counter()
    done = await asyncio.gather(*map(one, texts))
    seconds, after = time.perf_counter() - began, backend.stats()
    figures = {
        "seconds": round(seconds, 2),
        "completions_per_second": round(len(texts) / seconds, 1),
        "completion_ms": percentiles([took for took, _ in done]),
        "calls": sum(len(calls) for _, (_, calls, _) in done),
        "recomputed_tokens": after.recomputed_tokens - before.recomputed_tokens,
    }
    return figures, [made for _, made in done]


@contextlib.asynccontextmanager
async def vllm_serve(options: argparse.Namespace) -> AsyncIterator[str]:
    """The address of a `vllm serve`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("vllm")), "serve", str(options.model), "--port", str(port)),
        *("--dtype", "float32", "--max-model-len", str(options.length), "--max-logprobs", "20", "--max-num-seqs", "64"),
        *("--enable-prompt-tokens-details", "--disable-log-stats", *(["--enforce-eager"] if options.eager else [])),
        stdout=asyncio.subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(SECONDS), httpx.AsyncClient(trust_env=False) as http:
            while process.returncode is None:
                with contextlib.suppress(httpx.TransportError):
                    if (await http.get(f"{url}/health")).status_code == 200:
                        break
                await asyncio.sleep(0.5)
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


def inside(options: argparse.Namespace) -> Backend:
    """The backend that is vLLM."""
    # Imported here: the other ways need no vLLM in this process.
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits

    ids = end_ids(options.model, ByteLevelTokenizer.from_pretrained(options.model))
    return VllmBackend.load(
        options.model, ids, limits=VllmLimits(), max_model_len=options.length, enforce_eager=options.eager
    )


@contextlib.asynccontextmanager
async def ways(options: argparse.Namespace) -> AsyncIterator[dict[str, Backend]]:
    """The backends that were asked for, started."""
    async with contextlib.AsyncExitStack() as stack:
        backends: dict[str, Backend] = {}
        for way in options.ways:
            load: Callable[[], Backend] = partial(inside, options)
            if way != "inside":
                settings: dict[str, Any] = {"model": options.model, "max_model_len": options.length}
                if way == "in front":
                    url = await stack.enter_async_context(vllm_serve(options))
                    settings |= {"backend": "openai", "backend_url": url}
                load = backend_loader(GatewaySettings(**settings))
            backend = await asyncio.to_thread(load)
            await backend.start()
            stack.push_async_callback(backend.stop)
            backends[way] = backend
        yield backends


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """The report."""
    texts = prompts(options.prompts)
    best: dict[str, dict[str, Any]] = {}
    texts_of: dict[str, Any] = {}
    async with ways(options) as backends:
        for _ in range(options.rounds):
            for way, backend in backends.items():
                row, texts_of[way] = await measure(backend, texts, options)
                if way not in best or row["seconds"] < best[way]["seconds"]:
                    best[way] = row
    for way, row in best.items():
        if "local" in texts_of:
            same = (one == other for one, other in zip(texts_of[way], texts_of["local"], strict=True))
            row["same_as_local"] = sum(same)
    return {"prompts": len(texts), "at_once": options.at_once, "tool_ms": options.tool_ms, "ways": best}


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints the figures and writes benchmarks/results/vllm_pauses.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--length", type=int, default=1_024, help="tokens of a sequence at most")
    parser.add_argument("--prompts", type=int, default=250)
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--tool-ms", type=float, default=0.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--eager", action="store_true", help="vLLM without compiling the model, which takes minutes")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    report = asyncio.run(run(options))
    for way, row in report["ways"].items():
        print(f"{way}: {row}")
    print(f"written to {write_report('vllm_pauses', report, PACKAGES, options.results)}")


if __name__ == "__main__":
    main()
