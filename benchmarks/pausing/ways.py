"""The ways to pause: inside vLLM, in front of a `vllm serve`, in the local engine."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.processes import SECONDS
from benchmarks.reports import processor_seconds
from benchmarks.serving.metrics import scrape
from inference_gateway.backends.base import Backend
from inference_gateway.backends.loading import backend_loader, end_ids
from inference_gateway.engine.stats import StepTimes
from inference_gateway.settings import GatewaySettings
from language_model.tokenizer import ByteLevelTokenizer

WAYS: Final = ("inside", "in front", "nothing kept", "local")
"""`inside` is the backend that is vLLM; `in front` the `openai` backend and a `vllm serve` of the same model with the
same arguments; `nothing kept` is `in front` without vLLM's prefix cache; `local` is the local engine."""


class VllmCounts:
    """vLLM's own counts since its start; a `StatLoggerBase` by its methods."""

    prefilled = 0
    """Tokens of prompts and of later inputs that were computed."""
    sequences = 0
    hits = 0
    """Tokens that the prefix cache had when a sequence began."""
    preemptions = 0

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
        """Called by vLLM behind each step."""
        if scheduler_stats is not None:
            self.sequences += scheduler_stats.prefix_cache_stats.requests
            self.hits += scheduler_stats.prefix_cache_stats.hits
            if scheduler_stats.iteration_details is not None:
                self.prefilled += scheduler_stats.iteration_details.num_ctx_tokens
        if iteration_stats is not None:
            self.preemptions += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Called by vLLM at its start."""

    def log(self) -> None:
        """Called by vLLM now and then."""


@dataclass
class Way:
    """A started backend. ``times`` grows while it serves; ``counts`` are vLLM's, where that is inside, and ``url`` is
    where a `vllm serve` reports its own."""

    backend: Backend
    counts: VllmCounts | None = None
    url: str | None = None
    times: list[StepTimes] = field(default_factory=list)

    async def prefilled(self) -> float | None:
        """Tokens of prompts and results that vLLM has computed so far; ``None`` of the local engine."""
        if self.counts is not None:
            return self.counts.prefilled
        if self.url is None:
            return None
        metrics = await scrape(self.url)
        total, kept = (
            sum(value for key, value in metrics.items() if key.partition("{")[0] == f"vllm:{name}_total")
            for name in ("prompt_tokens", "prompt_tokens_cached")
        )
        return total - kept


def everybodys_seconds(process: int | None = None) -> float:
    """Processor seconds of a process, this one by default, and of all below it."""
    process = os.getpid() if process is None else process
    below = {int(child) for file in Path(f"/proc/{process}/task").glob("*/children") for child in _read(file).split()}
    return processor_seconds(process) + sum(map(everybodys_seconds, below))


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # that thread has ended
        return ""


@contextlib.asynccontextmanager
async def started_ways(options: argparse.Namespace, model: Path) -> AsyncIterator[dict[str, Way]]:
    """Those of ``options.ways``, started on ``model``."""
    async with contextlib.AsyncExitStack() as stack:
        ways: dict[str, Way] = {}
        for name in options.ways:
            counts = VllmCounts() if name == "inside" else None
            url: str | None = None
            settings: dict[str, Any] = {"model": model, "max_model_len": options.length}
            load: Callable[[], Backend] = partial(inside, model, options, counts)
            if name in ("in front", "nothing kept"):
                url = await stack.enter_async_context(vllm_serve(model, options, keep=name == "in front"))
                settings |= {"backend": "openai", "backend_url": url}
            if name != "inside":
                load = backend_loader(GatewaySettings(**settings))
            way = Way(await asyncio.to_thread(load), counts, url)
            way.backend.observe(way.times.append)
            await way.backend.start()
            stack.push_async_callback(way.backend.stop)
            ways[name] = way
        yield ways


def inside(model: Path, options: argparse.Namespace, counts: VllmCounts | None, **more: Any) -> Backend:
    """The backend that is vLLM. ``more``: arguments of `VllmBackend.load`."""
    # Imported here: the other ways need no vLLM in this process.
    from inference_gateway.backends.vllm.vllm_backend import VllmBackend, VllmLimits

    arguments: dict[str, Any] = {"limits": VllmLimits(), "max_model_len": options.length} | more
    return VllmBackend.load(
        model,
        end_ids(model, ByteLevelTokenizer.from_pretrained(model)),
        enforce_eager=options.eager,
        stat_loggers=[lambda *_: counts],
        enable_logging_iteration_details=True,
        **arguments,
    )


@contextlib.asynccontextmanager
async def vllm_serve(model: Path, options: argparse.Namespace, *, keep: bool) -> AsyncIterator[str]:
    """The address of a `vllm serve`; ``keep``: with its prefix cache."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("vllm")), "serve", str(model), "--port", str(port)),
        *("--dtype", "float32", "--max-model-len", str(options.length), "--max-logprobs", "20", "--max-num-seqs", "64"),
        *("--enable-prompt-tokens-details", *(["--enforce-eager"] if options.eager else [])),
        "--enable-prefix-caching" if keep else "--no-enable-prefix-caching",
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
