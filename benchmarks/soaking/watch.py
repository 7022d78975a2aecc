"""What a process takes while it serves, and what it still holds when it has served."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.processes import Service
from benchmarks.serving.metrics import scrape

HELD: Final = (
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_in_call",
    "kv_cache_usage_perc",
    "kv_held_bytes",
)
"""Gauges that are 0 when nobody is served."""

_FREE_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.5


def open_files(process: int) -> int:
    """Open files and connections of a process; 0 where the system does not say."""
    folder = Path(f"/proc/{process}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def middle_and_end(samples: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """The median MiB in the second fifth of the requests and in the last: the first one fills caches. ``samples``:
    completions that were asked for by then, and MiB.

    Raises:
        ValueError: if a fifth has no sample.
    """
    last = max(served for served, _ in samples)
    fifths = ((0.2 * last, 0.4 * last), (0.8 * last, last))
    parts = [[mib for served, mib in samples if low <= served <= high] for low, high in fifths]
    if not all(parts):
        raise ValueError(f"{len(samples)} samples of memory are too few to compare")
    return statistics.median(parts[0]), statistics.median(parts[1])


async def freed(gateway: Service) -> dict[str, float]:
    """`HELD` as soon as all are 0; as they are after half a minute if that does not come."""
    for _ in range(round(_FREE_SECONDS / _PAUSE_SECONDS)):
        samples = await scrape(gateway.url)
        held = {name: samples[name] for name in HELD}
        if not any(held.values()):
            break
        await asyncio.sleep(_PAUSE_SECONDS)
    return held
