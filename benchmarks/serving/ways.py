"""Ways to complete a text with a tool call in it, over HTTP: the gateway that pauses, and a client that resubmits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from benchmarks.serving.load import Job
from benchmarks.serving.record import Record
from benchmarks.serving.stream import Connection, Connections, post
from language_model.tokenizer import ByteLevelTokenizer
from toolformer.api_call import ARROW, OPEN, ApiCall, SplicedResult, scan_call, splice_result
from toolformer.tool_client import ToolClient
from toolformer.tools import ToolRegistry

TOOL = "Calculator"
"""The tool that requests of `load.jobs` call."""

TOOL_SECONDS = 60.0
"""Deadline of a call, for all ways: so long that a stalled machine makes a run slow, and not fail."""


class Tools:
    """Calls the tool on a client's behalf, with the same tool client as the gateway."""

    def __init__(self, client: ToolClient, registry: ToolRegistry, tokenizer: ByteLevelTokenizer) -> None:
        self._client, self._registry, self.tokenizer = client, registry, tokenizer

    @classmethod
    @contextlib.asynccontextmanager
    async def at(cls, url: str, tokenizer: ByteLevelTokenizer) -> AsyncIterator[Tools]:
        """The tool whose service is at ``url``."""
        registry = ToolRegistry.load(files=[], environ={f"TOOLFORMER_TOOL_{TOOL.upper()}_URL": url})
        async with ToolClient(registry) as client:
            yield cls(client, registry, tokenizer)

    def read(self, text: str) -> ApiCall | None:
        """The call that ``text`` ends with, up to its arrow; ``None`` if it is none of this tool and so only text."""
        call = scan_call(text.rpartition(OPEN)[2], self._registry.quoted_names).call
        return call if call is not None and call.tool == TOOL else None

    async def answer(self, call: ApiCall) -> SplicedResult:
        """What is to follow the arrow.

        Raises:
            RuntimeError: if the tool has no answer.
        """
        result = await self._client.call(call.tool, call.input, timeout=TOOL_SECONDS)
        limit = self._registry.get(call.tool).max_result_tokens
        spliced = splice_result(result.output or "", self.tokenizer, max_tokens=limit)
        if spliced is None:
            raise RuntimeError(f"{call.tool}({call.input}) had no answer: {result.error}")
        return spliced


class Pause:
    """The gateway calls the tool, in the middle of the completion."""

    def __init__(self, gateway: Connections) -> None:
        self._gateway = gateway

    async def run(self, job: Job, record: Record) -> None:
        """See `Way`."""
        asked: dict[str, Any] = {
            "prompt": job.prompt,
            "tools": [TOOL],
            "api_top_k": 1,
            "show_calls": False,
        }
        async with self._gateway.one() as connection:
            asked |= {"max_tokens": job.tokens, "stream_tool_events": True, "tool_timeout": TOOL_SECONDS}
            await _read(connection, asked, record)


class Resubmit:
    """The server ends the request at the arrow; its client calls the tool and sends everything again as a new one.

    Tokens go to and fro as ids, so that the text is computed from the same ones as by the gateway; to encode it again
    would take longer. The server is the same gateway, asked for the bare model."""

    def __init__(self, server: Connections, tools: Tools) -> None:
        self._server, self._tools = server, tools

    async def run(self, job: Job, record: Record) -> None:
        """See `Way`."""
        asked: dict[str, Any] = {"prompt": job.prompt}
        left, known, may_call = job.tokens, 0, True
        while True:
            how = {"plain": True, "stop": [ARROW], "include_stop_str_in_output": True} if may_call else {"tools": []}
            async with self._server.one() as connection:
                segment = await _read(connection, asked | how | {"max_tokens": left}, record)
            record.recomputed += max(0, known - segment.cached)
            left -= segment.made
            if not (may_call and left and segment.text.endswith(ARROW)):
                return
            known = len(segment.ids) - 1  # the token of the arrow was chosen, but never computed
            asked["prompt"] = segment.ids
            if call := self._tools.read(segment.text):
                record.call(time.perf_counter(), shown=True)
                result = await self._tools.answer(call)
                record.answer(time.perf_counter())
                record.text = record.text.removesuffix(unanswered(call))
                asked["prompt"], may_call = [*segment.ids, *result.ids], False


def unanswered(call: ApiCall) -> str:
    """The text of ``call`` up to its arrow."""
    return call.text(quoted=False).removesuffix("]") + ARROW


class _Segment:
    """What one HTTP request gave."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        """Tokens of the prompt and of the text."""
        self.text = ""
        self.made = self.cached = 0


async def _read(connection: Connection, body: dict[str, Any], record: Record) -> _Segment:
    """Stream one request, noting what comes."""
    segment, earlier = _Segment(), record.tokens
    asked = {"stream": True, "stream_options": {"include_usage": True}, "return_token_ids": True, **body}
    async for event in connection.events(post("/v1/completions", asked)):
        now = time.perf_counter()
        if "error" in event:
            raise RuntimeError(event["error"]["message"])
        if usage := event.get("usage"):
            segment.made = usage["completion_tokens"]
            segment.cached = usage["prompt_tokens_details"]["cached_tokens"]
            record.end(now, earlier + segment.made)
        for choice in event["choices"]:
            segment.ids += choice.get("prompt_token_ids", [])
            segment.ids += choice["token_ids"]
            segment.text += choice["text"]
            match choice.get("tool_event"):
                case {"type": "call_started"}:
                    record.call(now, shown=False)
                case {"type": "call_finished", "error": None}:
                    record.answer(now)
                case {"type": "call_finished", "error": error}:
                    raise RuntimeError(f"a call failed: {error}")
            record.token(now, len(choice["token_ids"]))
    record.text += segment.text
    return segment
