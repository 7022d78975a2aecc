"""All tools of the registry over the Model Context Protocol, as completions call them: one key, the same cache,
deadlines and circuits."""

from __future__ import annotations

import datetime as dt
import time
from typing import Final

from starlette.requests import Request

from inference_gateway.completion import client_message
from inference_gateway.quotas import OverQuota, Quotas
from inference_gateway.serving.gateway import Gateway
from inference_gateway.serving.refusals import no_room
from inference_gateway.spans import trace_headers
from toolformer.http_api import request_id
from toolformer.http_api.mcp_endpoint import McpEndpoint, NoAnswer, OfferedTool
from toolformer.tools import Tool

MAX_INPUT_CHARS: Final = 4_096
"""Characters of a call's input: more than the model itself ever writes, and a bound for tools that have none."""

_INSTRUCTIONS: Final = (
    "Tools that a language model calls in the middle of its text. Each takes one short text and answers with one; "
    "what it can do, and what it expects, is in its description. The same input gives the same answer, unless the tool "
    "is not marked as read-only."
)


def mcp_endpoint(gateway: Gateway, quotas: Quotas) -> McpEndpoint:
    """The endpoint of the tools of ``gateway``; a call takes a choice's place in ``quotas``."""

    async def answer(tool: str, input: str, date: dt.date | None, request: Request) -> str:
        if len(input) > MAX_INPUT_CHARS:
            raise NoAnswer(f"input_too_long: the input has {len(input):,} characters; at most {MAX_INPUT_CHARS:,}")
        headers = {**trace_headers(), "x-request-id": request_id.get()}
        began = time.perf_counter()
        try:
            with quotas.admitted(request.state.client):
                result = await gateway.tools.call(tool, input, date=date, headers=headers)
        except OverQuota as over:
            refusal = no_room(over)
            raise NoAnswer(f"{refusal.code}: {refusal.message}") from over
        gateway.metrics.saw_call(tool, result.error.code if result.error else "ok", time.perf_counter() - began)
        if result.error is not None:
            raise NoAnswer(client_message(result.error))
        return result.output or ""

    return McpEndpoint(
        [_offered(tool) for tool in gateway.registry],
        answer,
        gateway.settings.max_body_bytes,
        name="toolformer",
        version="1",
        title="Toolformer's tools",
        instructions=_INSTRUCTIONS,
    )


def _offered(tool: Tool) -> OfferedTool:
    return OfferedTool(
        name=tool.name,
        title=tool.name,
        description=tool.description,
        input_description="The call's input, as the tool's description says." if tool.takes_input else "Nothing.",
        max_input_chars=MAX_INPUT_CHARS,
        takes_input=tool.takes_input,
        takes_date=tool.takes_date,
        repeatable=tool.pure,  # an answer that is kept takes the place of a call
        outside=tool.outside is not None,
    )
