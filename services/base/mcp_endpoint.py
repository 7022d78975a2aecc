"""The tool over the Model Context Protocol: one tool, without effects on anything."""

from __future__ import annotations

import datetime as dt

from starlette.requests import Request

from services.base.engine import Call, NotReady, ToolFailure
from services.base.runner import ToolRunner
from toolformer.http_api import ApiError
from toolformer.http_api.mcp_endpoint import McpEndpoint, NoAnswer, OfferedTool


def one_tool(runner: ToolRunner) -> McpEndpoint:
    """The endpoint of the tool of ``runner``."""
    info = runner.info

    async def answer(tool: str, input: str, date: dt.date | None, request: Request) -> str:
        try:
            [answered] = await runner.answer([Call(input, date)])
        except (NotReady, ApiError) as error:
            raise NoAnswer(str(error)) from error
        if isinstance(answered.outcome, ToolFailure):
            raise NoAnswer(f"{answered.outcome.code}: {answered.outcome.message}")
        return answered.outcome

    offered = OfferedTool(
        name=info.tool,
        title=info.title,
        description=info.description,
        input_description=info.input_description,
        max_input_chars=info.max_input_chars,
        example_input=info.example_input,
        takes_input=info.takes_input,
        takes_date=info.takes_context,
    )
    return McpEndpoint(
        [offered],
        answer,
        info.max_body_bytes,
        name=info.tool,
        version=info.version,
        title=info.title,
        description=info.description,
        instructions=f"{info.description} Input: {info.input_description}",
    )
