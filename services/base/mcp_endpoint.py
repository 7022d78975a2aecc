"""The tool over the Model Context Protocol: streamable HTTP, stateless, one tool, JSON answers."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, PaginatedRequestParams, TextContent, Tool
from pydantic import Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive, Scope, Send

from services.base.engine import Call, NotReady, ServiceInfo, ToolFailure
from services.base.runner import ToolRunner
from services.base.wire import Day
from toolformer.http_api import ApiError, RequestBody, UnicodeText


class Arguments(RequestBody):
    """The tool's arguments, flat, as models fill them in best."""

    input: UnicodeText
    date: Day | None = Field(None, description="The day to take for today; by default the tool's own clock.")


class ArgumentsWithoutInput(Arguments):
    """The same for a tool that takes no input."""

    input: UnicodeText = ""


class McpEndpoint:
    """An ASGI app for ``/mcp``; it serves while `running` is entered.

    A call the tool cannot answer is a tool error that the model may read, not a protocol error. The library's own check
    of Host and Origin is off, for it cannot know the names that containers call each other by:
    `toolformer.http_api.hosts` checks.
    """

    def __init__(self, runner: ToolRunner) -> None:
        self._runner = runner
        self._arguments = Arguments if runner.info.takes_input else ArgumentsWithoutInput
        self._tool = _describe(runner.info, self._arguments)
        self._sessions: StreamableHTTPSessionManager | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside this context: a fresh session manager each time, since one can run only once."""
        info = self._runner.info
        server: Server[Any] = Server(
            info.tool,
            version=info.version,
            title=info.title,
            description=info.description,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # The size of a body is limited for all routes by the app; MCP's own limit must not be the lower one.
        self._sessions = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=info.max_body_bytes
        )
        async with self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one MCP request."""
        if self._sessions is None:
            raise RuntimeError("the app's lifespan has not been started")
        # The body is read here because the session manager logs a client that leaves while sending one as an error.
        try:
            body = await Request(scope, receive).body()
        except ClientDisconnect:
            return
        unread: list[Message] = [{"type": "http.request", "body": body}]

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        await self._sessions.handle_request(scope, replay, send)

    async def _list_tools(self, _: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[self._tool])

    async def _call_tool(self, _: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        if params.name != self._tool.name:
            return _failed(f"there is no tool {params.name[:100]!r} here; the one tool is {self._tool.name!r}")
        try:
            arguments = self._arguments.model_validate(params.arguments or {})
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"]))[:100]
            return _failed(f"{field!r}: {problem['msg']}")
        try:
            [answer] = await self._runner.answer([Call(arguments.input, arguments.date)])
        except (NotReady, ApiError) as error:
            return _failed(str(error))
        if isinstance(answer.outcome, ToolFailure):
            return _failed(f"{answer.outcome.code}: {answer.outcome.message}")
        return CallToolResult(content=[TextContent(type="text", text=answer.outcome)])


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)


def _describe(info: ServiceInfo, arguments: type[Arguments]) -> Tool:
    schema = arguments.model_json_schema()
    del schema["title"], schema["description"]  # of this code, not of the tool
    schema["properties"]["input"]["description"] = info.input_description
    schema["properties"]["input"]["examples"] = [info.example_input]
    if not info.takes_context:
        del schema["properties"]["date"]
    return Tool(name=info.tool, title=info.title, description=info.description, input_schema=schema)
