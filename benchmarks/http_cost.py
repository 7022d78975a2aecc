"""What the gateway's HTTP path costs: tokens per second of a gateway process, read over server-sent events, beside the
same engine driven inside this process.

    python -m benchmarks.http_cost [--model models/gptj-tools] [--streams 32] [--tokens 128] [--seconds 3] [--rounds 3]

So many clients each send a request, read its stream to the end and send the next, without tools. The two ways take
turns, and the best round of each counts. Clients read with bare sockets: a Python HTTP client takes more processor
time than the gateway, and the cores are shared."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import selectors
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.http_load import post
from benchmarks.serving.gateway import endless, endless_gateway
from benchmarks.workload import PROMPTS
from inference_gateway.actions import Done
from inference_gateway.backends.local import LocalBackend
from inference_gateway.core import CompletionRequest
from inference_gateway.engine.limits import EngineLimits

_END = b"0\r\n\r\n"
_USAGE = re.compile(rb'"completion_tokens":(\d+)')
_WARM_UP_SECONDS = 0.7


def limits(streams: int, tokens: int) -> list[int]:
    """Tokens of each client's requests, ``tokens`` on average: of different lengths, so that they end at any time."""
    return [tokens * 3 // 4 + tokens * number // (2 * max(1, streams - 1)) for number in range(streams)]


class Window:
    """Counts the tokens of the responses that end in it; what runs before and after keeps the load steady."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._made = seconds, 0
        self._begin = time.perf_counter() + _WARM_UP_SECONDS

    @property
    def over(self) -> bool:
        return time.perf_counter() > self._begin + self._seconds

    def count(self, tokens: int) -> None:
        if self._begin < time.perf_counter() and not self.over:
            self._made += tokens

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self._made / self._seconds


async def engine_rate(backend: LocalBackend, streams: int, tokens: int, seconds: float) -> float:
    """Tokens per second inside this process."""
    window = Window(seconds)

    async def client(number: int, limit: int) -> None:
        ids = tuple(backend.tokenizer.encode(PROMPTS[number % len(PROMPTS)]))
        while not window.over:
            async for action in backend.open(CompletionRequest(ids, max_tokens=limit), {}):
                if isinstance(action, Done):
                    window.count(action.usage.completion_tokens)

    await asyncio.gather(*(client(number, limit) for number, limit in enumerate(limits(streams, tokens))))
    return window.rate


def http_rate(port: int, streams: int, tokens: int, seconds: float) -> float:
    """Tokens per second as clients of the gateway read them."""
    window = Window(seconds)
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as connections:
        for number, limit in enumerate(limits(streams, tokens)):
            client = connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            message = _request(PROMPTS[number % len(PROMPTS)], limit)
            client.sendall(message)
            selector.register(client, selectors.EVENT_READ, (client, message, bytearray()))
        while not window.over:
            for key, _ in selector.select(timeout=10):
                client, message, received = key.data
                received += client.recv(65536)
                if received.endswith(_END):
                    counts = _USAGE.findall(received)
                    assert counts, received[:500]
                    window.count(int(counts[-1]))
                    received.clear()
                    client.sendall(message)
    return window.rate


def _request(prompt: str, tokens: int) -> bytes:
    asked = {"prompt": prompt, "max_tokens": tokens, "tools": [], "stream": True}
    return post("/v1/completions", asked | {"stream_options": {"include_usage": True}})


def load(model: Path, streams: int) -> LocalBackend:
    """The backend that the gateway process has."""
    return endless(LocalBackend.load(model, limits=EngineLimits(max_sequences=streams)))


async def measure(options: argparse.Namespace) -> dict[str, float]:
    backend = load(options.model, options.streams)
    await backend.start()
    best = {"engine": 0.0, "http": 0.0}
    async with endless_gateway(options.model, max_sequences=options.streams) as gateway:
        port = urlsplit(gateway.url).port
        assert port is not None
        for _ in range(options.rounds):
            driven = (options.streams, options.tokens, options.seconds)
            inside = await engine_rate(backend, *driven)
            rates = {"engine": inside, "http": await asyncio.to_thread(http_rate, port, *driven)}
            best = {name: max(best[name], rate) for name, rate in rates.items()}
    await backend.stop()
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("models/gptj-tools"))
    parser.add_argument("--streams", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/http_cost.json"))
    options = parser.parse_args(arguments)
    rates = asyncio.run(measure(options))
    cost = 1 - rates["http"] / rates["engine"]
    told = f"{options.streams} streams: engine {rates['engine']:.0f}, over HTTP {rates['http']:.0f} tokens/s"
    print(f"{told}: {cost:.0%} less")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps({"streams": options.streams, **rates, "cost": cost}, indent=2) + "\n")


if __name__ == "__main__":
    main()
