"""A gateway's own account of a load: its counters before and after."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from dataclasses import dataclass

from benchmarks.processes import Service
from benchmarks.reports import processor_seconds

_SAMPLE = re.compile(r"(?m)^(?:toolformer_)?([a-z0-9_:]+(?:\{.*\})?) ([-+.0-9eE]+)$")
_SECONDS = 10.0


async def scrape(url: str) -> dict[str, float]:
    """The samples of ``/metrics`` by their names without ``toolformer_``, labels included."""

    def read() -> str:
        with urllib.request.urlopen(f"{url}/metrics", timeout=_SECONDS) as response:
            return str(response.read().decode())

    return {name: float(value) for name, value in _SAMPLE.findall(await asyncio.to_thread(read))}


@dataclass(frozen=True, slots=True)
class Account:
    """What a gateway had counted at a moment, and the processor seconds it had taken."""

    samples: dict[str, float]
    processor: float

    @classmethod
    async def of(cls, gateway: Service) -> Account:
        """Its account now."""
        return cls(await scrape(gateway.url), processor_seconds(gateway.process))

    def since(self, before: Account, name: str) -> float:
        """How much a counter has grown since ``before``."""
        return self.samples[name] - before.samples[name]

    def mean(self, before: Account, histogram: str) -> float | None:
        """The mean of what a histogram has seen since ``before``; ``None`` if it saw nothing."""
        count = self.since(before, f"{histogram}_count")
        return self.since(before, f"{histogram}_sum") / count if count else None
