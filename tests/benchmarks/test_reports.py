"""What every benchmark reports of a process, and a server that cannot start."""

from __future__ import annotations

import os

import pytest

from benchmarks.processes import started
from benchmarks.reports import memory_mib, percentiles, processor_seconds


async def test_a_service_that_cannot_start_says_why() -> None:
    with pytest.raises(RuntimeError, match="IANA name"):
        async with started("services.calendar", {"TOOLFORMER_CALENDAR_TIMEZONE": "Nowhere"}):
            pass


def test_percentiles_are_of_the_durations_in_milliseconds() -> None:
    assert percentiles([number / 1_000 for number in range(101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}
    assert percentiles([0.25]) == {"p50": 250.0, "p95": 250.0, "p99": 250.0}


def test_memory_of_a_process_that_is_not_there_is_unknown() -> None:
    assert memory_mib(os.getpid()) > 10
    assert memory_mib(2**30) == 0
    assert processor_seconds(os.getpid()) > 0
    assert processor_seconds(2**30) == 0
