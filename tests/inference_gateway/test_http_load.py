"""Fifty completions at once, whose tool dies in the middle and comes back."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from tests.inference_gateway.http_harness import gateway
from tests.support.waiting import until
from tests.toolformer import tool_service

RESULTS = {"1 + 1": "2", "2 + 2": "4"}
DONE = " One [Calculator(1 + 1) -> 2] and [Calculator(2 + 2) -> 4] done."


def adds(call: Any) -> dict[str, Any]:
    return tool_service.answer("Calculator", call, output=RESULTS[call["input"]])


async def test_a_tool_that_dies_costs_its_calls_only() -> None:
    enough = asyncio.Event()
    asked = 0

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked > 30:  # it hangs, and then it dies
            enough.set()
            await tool_service.silent(seen, writer)
        await tool_service.answers(adds)(seen, writer)

    async with AsyncExitStack() as tool_life:
        tool = await tool_life.enter_async_context(tool_service.serve(behave))
        async with gateway({"Calculator": tool.url}, {"max_sequences": 16}) as running:
            half = [asyncio.create_task(running.complete("Two:", max_calls=2, max_tokens=80)) for _ in range(25)]
            streams = [asyncio.create_task(running.stream("Two:", max_calls=2, max_tokens=80)) for _ in range(25)]
            async with asyncio.timeout(60):
                await enough.wait()
                await tool_life.aclose()
                choices = [answer["choices"][0] for answer in await asyncio.gather(*half)]
                for stream in await asyncio.gather(*streams):
                    [terminal] = stream.terminals()
                    choices.append({**terminal, "text": stream.text()})
            assert len(choices) == 50
            assert {choice["finish_reason"] for choice in choices} == {"stop"}
            calls = [call for choice in choices for call in choice["tool_calls"]]
            assert all((call["output"] is None) != (call["error"] is None) for call in calls)
            codes = {call["error"].split(":")[0] for call in calls if call["error"]}
            assert codes
            assert codes <= {"unreachable", "circuit_open"}
            assert sum(call["output"] is not None for call in calls) == 30
            for choice in choices:  # what the text shows is what the calls brought
                assert choice["text"].count("->") == sum(call["output"] is not None for call in choice["tool_calls"])

            async def again() -> str:
                answer = await running.complete("Two:", max_calls=2, max_tokens=80)
                return str(answer["choices"][0]["text"])

            async with tool_service.serve(tool_service.answers(adds), tool.port):
                async with asyncio.timeout(60):
                    while await again() != DONE:  # noqa: ASYNC110 - the gateway finds out by itself, within its cool-down
                        await asyncio.sleep(0.05)
                assert set(await asyncio.gather(*(again() for _ in range(50)))) == {DONE}


async def test_more_than_can_wait_are_refused_at_once_and_in_full() -> None:
    async with gateway(limits={"max_sequences": 1, "max_waiting": 2}) as running:
        holding = asyncio.create_task(running.http.post("/v1/completions", json={"prompt": "Slow:", "max_tokens": 200}))
        await until(lambda: running.backend.stats().running > 0)
        for stream in (False, True):
            body = {"prompt": ["Plain:"] * 4, "stream": stream}
            refused = await running.http.post("/v1/completions", json=body)
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
            assert refused.json()["error"]["code"] == "busy"
            await until(lambda: running.backend.stats().waiting == 0)
        holding.cancel()
