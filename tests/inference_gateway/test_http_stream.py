"""``POST /v1/completions`` answered in server-sent events."""

from __future__ import annotations

import asyncio
import json
import random
from typing import Any

import pytest

from tests.inference_gateway.http_harness import WIDE, Gateway, ScriptedSampler, Stream, gateway
from tests.toolformer import tool_service

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_stream_returns_what_json_returns(tooled: Gateway) -> None:
    fields = {"n": 2, "echo": True, "max_calls": 2}
    whole = await tooled.complete(["Two:", "Wide:"], **fields)
    stream = await tooled.stream(["Two:", "Wide:"], **fields, stream_options={"include_usage": True})
    for choice in whole["choices"]:
        [terminal] = stream.terminals(choice["index"])
        assert stream.text(choice["index"]) == choice["text"]
        assert terminal["text"] == ""
        assert terminal["finish_reason"] == choice["finish_reason"]
        assert terminal["timed_out"] is False
        assert [call["output"] for call in terminal["tool_calls"]] == [call["output"] for call in choice["tool_calls"]]
        assert [call["offset"] for call in terminal["tool_calls"]] == [call["offset"] for call in choice["tool_calls"]]
    *others, last = stream.chunks
    assert (last["choices"], last["usage"]) == ([], whole["usage"])
    assert all(chunk["usage"] is None for chunk in others)
    assert {(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in others} == {
        (last["id"], last["created"], "scripted", "text_completion")
    }


async def test_without_being_asked_a_stream_has_text_and_an_end_only(tooled: Gateway) -> None:
    stream = await tooled.stream("Sum:")
    assert stream.text() == " It is [Calculator(24 * 17) -> 408] 408 books."
    assert all("usage" not in chunk for chunk in stream.chunks)
    *texts, terminal = stream.choices
    assert all(set(choice) == {"index", "text", "logprobs", "finish_reason"} for choice in texts)
    assert all(choice["text"] and choice["finish_reason"] is None for choice in texts)
    assert terminal["tool_calls"][0]["output"] == "408"


async def test_tool_events_are_sent_between_the_texts_they_are_between(tooled: Gateway) -> None:
    stream = await tooled.stream("Sum:", stream_tool_events=True, echo=True)
    tool_events = [choice for choice in stream.choices if "tool_event" in choice]
    assert all(choice["text"] == "" and choice["finish_reason"] is None for choice in tool_events)
    started, finished = (choice["tool_event"] for choice in tool_events)
    offset = len("Sum: It is")
    assert started == {"type": "call_started", "tool": "Calculator", "input": "24 * 17", "offset": offset}
    assert finished.pop("duration_ms") > 0
    assert finished == {
        "type": "call_finished",
        "tool": "Calculator",
        "input": "24 * 17",
        "output": "408",
        "error": None,
        "offset": offset,
    }
    before = "".join(choice["text"] for choice in stream.choices[: stream.choices.index(tool_events[0])])
    assert before == "Sum: It is"


async def test_text_is_sent_as_it_comes() -> None:
    answering = asyncio.Event()

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        await answering.wait()
        await tool_service.capitals("Calculator")(seen, writer)

    async with tool_service.serve(behave) as tool, gateway({"Calculator": tool.url}) as running:
        body = {"prompt": "Sum:", "max_tokens": 40, "stream": True}
        async with running.http.stream("POST", "/v1/completions", json=body) as response:
            text = b""
            pieces = response.aiter_raw()
            while b" is" not in text:
                text += await anext(pieces)
            assert not answering.is_set()
            answering.set()
            async for piece in pieces:
                text += piece
    assert Stream.read(text).text() == " It is [Calculator(24 * 17) -> 24 * 17]"


async def test_silence_is_bridged_by_comments() -> None:
    """The tool answers only once two comments have come."""
    answering = asyncio.Event()

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        await answering.wait()
        await tool_service.capitals("Calculator")(seen, writer)

    async with (
        tool_service.serve(behave) as tool,
        gateway({"Calculator": tool.url}, keep_alive_seconds=0.05) as running,
    ):
        body = {"prompt": "Sum:", "max_tokens": 40, "stream": True}
        async with running.http.stream("POST", "/v1/completions", json=body) as response:
            content = b""
            async for piece in response.aiter_raw():
                content += piece
                if content.count(b": keep-alive\n\n") >= 2:
                    answering.set()
    stream = Stream.read(content)
    assert stream.comments >= 2
    assert len(stream.terminals()) == 1


async def test_lines_break_where_the_protocol_says_and_nowhere_else(plain: Gateway) -> None:
    body = {"prompt": "Wide:", "max_tokens": 40, "stream": True}
    response = await plain.http.post("/v1/completions", json=body)
    lines = response.text.splitlines()  # a careless client's way, which also breaks at U+2028 and U+0085
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == WIDE


async def test_trouble_in_a_stream_is_its_last_event(plain: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model breaks in the middle of a text."""
    choose, steps = ScriptedSampler.choose, iter(range(100))

    def breaking(*arguments: Any) -> Any:
        if next(steps) == 5:
            raise RuntimeError("broken on purpose")
        return choose(*arguments)

    monkeypatch.setattr(ScriptedSampler, "choose", breaking)
    stream = await plain.stream("Long:")
    *_, last = stream.chunks
    assert stream.text().startswith(" on")
    assert stream.terminals() == []
    assert set(last) == {"error"}
    assert (last["error"]["type"], last["error"]["code"]) == ("server_error", "generation_failed")
    assert (await plain.complete("Plain:"))["choices"][0]["text"] == " a plain text."


async def test_the_time_limit_ends_a_text_and_says_so() -> None:
    async with (
        tool_service.serve(tool_service.silent) as tool,
        gateway({"Calculator": tool.url}, completion_timeout=8.0) as running,
    ):
        answer, stream = await asyncio.gather(running.complete("Sum:"), running.stream("Sum:"))
        assert await running.metric('toolformer_completions_total{finish_reason="timeout"}') == 2
    [terminal] = stream.terminals()
    for ended, text in ((answer["choices"][0], answer["choices"][0]["text"]), (terminal, stream.text())):
        assert text == " It is"
        assert (ended["finish_reason"], ended["timed_out"]) == ("length", True)
        [call] = ended["tool_calls"]
        assert call["output"] is None
        assert call["error"].startswith("timeout: ")


def any_request(rng: random.Random) -> dict[str, Any]:
    """A request of any kind."""
    cues = ["Sum:", "Two:", "Same:", "Day:", "Wide:", "Plain:", "Long:"]
    fields = {
        "n": rng.randint(1, 3),
        "max_calls": rng.randint(0, 3),
        "api_top_k": rng.choice([0, 10]),
        "tools": rng.choice([[], ["Calculator"], ["Calendar", "Calculator"], ["WikiSearch"]]),
        "show_calls": rng.choice([True, False]),
        "echo": rng.choice([True, False]),
        "stop": rng.choice(["o", [" 4", "]"], "never to be found"]),
    }
    chosen = {name: value for name, value in fields.items() if rng.random() < 0.5}
    return {"prompt": rng.choices(cues, k=rng.randint(1, 3)), "max_tokens": rng.randint(1, 60), **chosen}


@pytest.mark.parametrize("seed", range(3))
async def test_every_choice_of_every_stream_ends_exactly_once(seed: int) -> None:
    """Forty requests of any kind at once, each as a stream and as JSON; a part of the calls fails."""
    rng = random.Random(seed)
    bodies = [any_request(rng) for _ in range(40)]

    async def behave(seen: tool_service.Seen, writer: asyncio.StreamWriter) -> None:
        fails = rng.random() < 0.3
        await (tool_service.status(500) if fails else tool_service.capitals("Calculator"))(seen, writer)

    async with (
        tool_service.serve(behave) as tool,
        gateway({"Calculator": tool.url}, {"max_waiting": 1000}) as running,
    ):
        streams, answers = await asyncio.gather(
            asyncio.gather(*(running.stream(**body, stream_tool_events=rng.random() < 0.5) for body in bodies)),
            asyncio.gather(*(running.complete(**body) for body in bodies)),
        )
    for body, stream, answer in zip(bodies, streams, answers, strict=True):
        wanted = len(body["prompt"]) * body.get("n", 1)
        assert [choice["index"] for choice in answer["choices"]] == list(range(wanted))
        assert {choice["index"] for choice in stream.choices} == set(range(wanted))
        for index in range(wanted):
            own = [choice for choice in stream.choices if choice["index"] == index]
            assert [choice["finish_reason"] is not None for choice in own] == [False] * (len(own) - 1) + [True]
