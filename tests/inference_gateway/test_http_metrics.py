"""What ``/metrics`` says of a run: every name, with values that belong to what happened."""

import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from tests.inference_gateway.http_harness import Gateway, gateway
from tests.toolformer import tool_service

pytestmark = pytest.mark.asyncio(loop_scope="module")

GAUGES = {
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_in_call",
    "kv_cache_usage_perc",
    "kv_held_bytes",
}
COUNTERS = {
    "prefix_cache_queries", "prefix_cache_hits", "computed_tokens", "recomputed_tokens", "num_preemptions",
    "dropped_pauses", "completions", "prompt_tokens", "generation_tokens", "tool_tokens", "rolled_back_tokens",
    "tool_calls", "tool_cache_lookups", "early_dispatches",
}  # fmt: skip
HISTOGRAMS = {
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "resume_latency_seconds",
    "e2e_request_latency_seconds",
    "tool_call_duration_seconds",
}


async def scraped(running: Gateway) -> dict[tuple[str, ...], float]:
    """The samples of the gateway's own metrics, by name and label values; their kinds are checked."""
    families = list(text_string_to_metric_families((await running.http.get("/metrics")).text))
    own = {
        family.name.removeprefix("toolformer_"): family
        for family in families
        if family.name.startswith("toolformer_") and not family.name.endswith("_created")
    }
    assert set(own) == GAUGES | COUNTERS | HISTOGRAMS
    for names, kind in ((GAUGES, "gauge"), (COUNTERS, "counter"), (HISTOGRAMS, "histogram")):
        assert {own[name].type for name in names} == {kind}
    labels = ("finish_reason", "tool", "outcome", "le")
    return {
        (sample.name.removeprefix("toolformer_"), *(sample.labels[name] for name in labels if name in sample.labels)): (
            sample.value
        )
        for family in own.values()
        for sample in family.samples
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def values(tooled: Gateway) -> dict[tuple[str, ...], float]:
    """The samples after four completions with three calls that were answered and one that was refused."""
    answer = await tooled.complete(["Sum:", "Same:", "Day:"], max_calls=3)
    await tooled.complete("Long:", max_tokens=5)
    await tooled.idle()
    samples = await scraped(tooled)
    usage = answer["usage"]
    assert samples["generation_tokens_total",] == usage["completion_tokens"] + 5
    assert samples["tool_tokens_total",] == usage["tool_tokens"] > 0
    assert samples["rolled_back_tokens_total",] == usage["rolled_back_tokens"] > 0
    return samples


async def test_a_run_is_counted(values: dict[tuple[str, ...], float]) -> None:
    assert values["completions_total", "stop"] == 3
    assert values["completions_total", "length"] == 1
    assert values["tool_calls_total", "Calculator", "ok"] == 2
    assert values["tool_calls_total", "Calendar", "ok"] == 1
    assert values["tool_calls_total", "Calculator", "repeated_call"] == 1
    for name in GAUGES:
        assert values[name,] == 0
    made = sum(values[f"{kind}_tokens_total",] for kind in ("prompt", "generation", "tool", "rolled_back"))
    assert made / 3 < values["computed_tokens_total",] <= made
    # What is rolled back may need the token before it once more; a call that was answered needs nothing.
    assert values["recomputed_tokens_total",] <= values["tool_calls_total", "Calculator", "repeated_call"]
    assert values["prefix_cache_hits_total",] <= values["prefix_cache_queries_total",]


async def test_a_run_is_timed(values: dict[tuple[str, ...], float]) -> None:
    assert values["tool_call_duration_seconds_count", "Calculator", "ok"] == 2
    assert ("tool_call_duration_seconds_count", "Calculator", "repeated_call") not in values
    assert values["time_to_first_token_seconds_count",] == values["e2e_request_latency_seconds_count",] == 4
    assert values["resume_latency_seconds_count",] == 3
    # Each token but a first one and one that follows an answer.
    between = values["generation_tokens_total",] + values["rolled_back_tokens_total",] - 4 - 3
    assert between - 4 <= values["inter_token_latency_seconds_count",] <= between + 4
    for name in HISTOGRAMS - {"tool_call_duration_seconds"}:
        assert 0 < values[f"{name}_sum",] < 60 * values[f"{name}_count",]
    waited = sum(value for key, value in values.items() if key[0] == "tool_call_duration_seconds_sum")
    assert waited < values["e2e_request_latency_seconds_sum",]


async def test_what_is_held_during_calls_is_gauged() -> None:
    async with tool_service.serve(tool_service.silent) as tool, gateway({"Calculator": tool.url}) as running:
        body = {
            "prompt": ["Sum:"] * 2,
            "max_tokens": 40,
            "tool_timeout": 60,
            "stream": True,
            "stream_tool_events": True,
        }
        async with running.http.stream("POST", "/v1/completions", json=body) as response:
            received = ""
            async for piece in response.aiter_text():
                received += piece
                if received.count("call_started") == 2:
                    break
            values = await scraped(running)
    assert (values["num_requests_in_call",], values["num_requests_running",]) == (2, 0)
    assert 0 < values["kv_cache_usage_perc",] <= 1
    assert values["kv_held_bytes",] > 0


async def test_prompts_that_begin_alike_are_found_in_the_cache(plain: Gateway) -> None:
    prompt = "Each of the 24 boxes holds 17 books. " * 4
    usages = [(await plain.complete(prompt))["usage"] for _ in range(2)]
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage in usages]
    assert cached[0] == 0 < cached[1] < usages[1]["prompt_tokens"]
    values = await scraped(plain)
    assert values["prefix_cache_hits_total",] == cached[1]
    assert values["prefix_cache_queries_total",] >= sum(usage["prompt_tokens"] for usage in usages) - 2
