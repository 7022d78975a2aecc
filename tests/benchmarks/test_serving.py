"""The load on the gateway: the same for the same seed, sent as planned, and reported as it was."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.serve import WAYS
from benchmarks.serving.figures import figures, overlap, union
from benchmarks.serving.gateway import endless_gateway
from benchmarks.serving.load import Driven, Job, Load, Way, drive, jobs
from benchmarks.serving.record import Record
from benchmarks.serving.stream import Connections
from benchmarks.serving.tools import calculator
from benchmarks.serving.ways import TOOL, Pause, Resubmit, Tools
from inference_gateway.settings import BUNDLED_MODEL
from language_model.tokenizer import ByteLevelTokenizer
from tests.benchmarks.test_small_runs import reported


def test_the_same_seed_gives_the_same_requests() -> None:
    load = Load(requests=40, seed=3)
    planned = jobs(load)
    assert jobs(load) == planned
    assert jobs(dataclasses.replace(load, requests=10)) == planned[:10]
    assert jobs(dataclasses.replace(load, seed=4)) != planned
    assert all(64 <= job.tokens <= 192 for job in planned)


def called() -> Record:
    """Three tokens, a call of four that are not shown, its answer after 0.2 s, two tokens together."""
    record = Record(arrived=10.0)
    for now in (10.5, 10.6, 10.8):
        record.token(now)
    record.call(11.2, shown=False)
    record.answer(11.4)
    record.token(11.45, 2)
    record.end(11.5, made=9)
    return record


def test_a_record_separates_tokens_from_waits() -> None:
    record = called()
    assert record.first == 10.5
    assert record.tokens == 9
    assert record.between == pytest.approx([0.1, 0.2, *[0.1] * 4])
    assert record.calls == [(11.2, 11.4)]
    assert record.resumes == pytest.approx([0.05])
    early = Record(arrived=0.0)
    early.call(1.0, shown=False)
    assert early.first == 1.0, "a call is known of before any token is shown"


def test_figures_are_of_the_time_in_which_no_client_was_idle() -> None:
    plain = Record(arrived=10.0)
    for now in range(11, 21):
        plain.token(float(now))
    plain.end(20.0, made=10)
    found = figures(Driven([called(), plain], began=10.0, steady=11.0, last_begun=16.0))
    assert found["requests_per_s"] == 0.2
    assert found["tokens_per_s"] == pytest.approx((6 + 5) / 5)
    assert found["tokens_per_s_in_calls"] == pytest.approx(4 / 0.2)
    assert found["first_token_ms"]["p50"] == 500
    assert found["request_ms"] == {"p50": 1500, "p95": 1500, "p99": 1500}
    assert (found["calls"], found["recomputed_per_call"]) == (1, 0)
    whole = figures(Driven([called(), plain], began=10.0, steady=19.0, last_begun=16.0))
    assert whole["tokens_per_s"] == pytest.approx(1.9), "there was no such time"


def test_spans() -> None:
    assert union([(3, 4), (0, 1), (0.5, 2), (2, 2.5)]) == [(0, 2.5), (3, 4)]
    assert overlap([(0, 2), (3, 4), (6, 7)], (1, 3.5)) == [(1, 2), (3, 3.5)]


class Counting:
    """A way that takes 20 ms and knows how many it does at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.done: Counter[int] = Counter()

    async def run(self, job: Job, record: Record) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0.02)
        self.now -= 1
        self.done[job.number] += 1
        record.token(time.perf_counter())
        record.end(time.perf_counter(), 1)


async def test_every_request_is_sent_once_and_no_more_at_once_than_allowed() -> None:
    load = Load(requests=12, concurrency=3)
    way = Counting()
    driven = await drive(way, load)
    assert way.done == Counter(range(12))
    assert way.most == 3
    first_end = min(record.ended for record in driven.records)
    assert sum(record.arrived < first_end for record in driven.records) == 3


@pytest.mark.slow
async def test_every_way_gives_the_same_text() -> None:
    tokenizer = ByteLevelTokenizer.from_pretrained(BUNDLED_MODEL)
    load = Load(requests=4, concurrency=4, tokens=32)
    async with (
        calculator(0.01) as tool,
        Tools.at(tool.url, tokenizer) as tools,
        endless_gateway(BUNDLED_MODEL, {TOOL: tool.url}, max_sequences=4) as gateway,
        Connections(gateway.url) as connections,
    ):
        ways: list[Way] = [Pause(connections), Resubmit(connections, tools)]
        runs = [(await drive(way, load)).records for way in ways]
    for job, *records in zip(jobs(load), *runs, strict=True):
        assert {record.tokens for record in records} == {job.tokens}
        assert [len(record.calls) for record in records] == [len(record.resumes) for record in records] == [1, 1]
        assert len({record.text for record in records}) == 1
        assert records[0].recomputed == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_small_run_of_each_way(tmp_path: Path) -> None:
    sizes = ("--requests", "6", "--concurrency", "2", "--tokens", "48", "--tool-ms", "0", "5", "--rounds", "1")
    report = reported(tmp_path, "serve", *sizes, "--ways", *WAYS)
    rows = {(row["way"], row["tool_ms"]): row for row in report["rows"]}
    assert rows.keys() == {(way, tool_ms) for way in WAYS for tool_ms in (0, 5)}
    for row in rows.values():
        assert row["called_share"] == 1
        assert row["requests_per_s"] > 0
        # A call beyond the last one that may be made is taken back, which needs the token before it once more.
        assert row["recomputed_per_call"] <= 1
