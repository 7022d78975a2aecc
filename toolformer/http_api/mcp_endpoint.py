"""Tools over the Model Context Protocol: streamable HTTP, stateless, JSON answers."""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import Field, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from toolformer.http_api.body import RequestBody
from toolformer.http_api.day import Day
from toolformer.http_api.limits import replayed
from toolformer.http_api.text import UnicodeText

_OUTPUT_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"output": {"type": "string", "description": "The answer."}},
    "required": ["output"],
}


class NoAnswer(Exception):  # noqa: N818 - an outcome of a call
    """The tool has no answer; the text says why, for the model that called it."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as clients see it: ``repeatable`` says that calling it changes nothing, ``outside`` that it may reach the
    world beyond this server."""

    name: str
    title: str
    description: str
    input_description: str
    max_input_chars: int
    example_input: str | None = None
    takes_input: bool = True
    takes_date: bool = False
    repeatable: bool = True
    outside: bool = False

    def described(self) -> Tool:
        """The tool in the protocol's form."""
        schema = self.arguments().model_json_schema()
        del schema["title"], schema["description"]  # of this code, not of the tool
        given = schema["properties"]["input"]
        given |= {"description": self.input_description, "maxLength": self.max_input_chars}
        if self.example_input is not None:
            given["examples"] = [self.example_input]
        if not self.takes_date:
            del schema["properties"]["date"]
        hints = ToolAnnotations(
            read_only_hint=self.repeatable, idempotent_hint=self.repeatable, open_world_hint=self.outside
        )
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema,
            output_schema=_OUTPUT_SCHEMA,
            annotations=hints,
        )

    def arguments(self) -> type[Arguments]:
        """What its arguments must be."""
        return Arguments if self.takes_input else ArgumentsWithoutInput


class Arguments(RequestBody):
    """The tool's arguments, flat, as models fill them in best."""

    input: UnicodeText
    date: Day | None = Field(None, description="The day to take for today; by default the tool's own clock.")


class ArgumentsWithoutInput(Arguments):
    """The same for a tool that takes no input."""

    input: UnicodeText = ""


class AnswersCalls(Protocol):
    """Answers a call."""

    async def __call__(self, tool: str, input: str, date: dt.date | None, request: Request) -> str:
        """The output of the tool; ``request`` is the one that brought the call.

        Raises:
            NoAnswer: if there is none.
        """
        ...


class McpEndpoint:
    """An ASGI app for ``/mcp``; it serves while `running` is entered.

    A call that a tool cannot answer is a tool error that the model may read, not a protocol error. The library's own
    check of Host and Origin is off, for it cannot know the names that containers call each other by:
    `toolformer.http_api.hosts` checks.

    Args:
        tools: what is offered.
        answer: answers a call of them.
        max_body_bytes: the app's limit of a body, which it keeps itself; the protocol's own must not be the lower one.
        about: what the server says of itself: the SDK's ``name``, ``version``, ``instructions`` and the like.
    """

    def __init__(self, tools: Sequence[OfferedTool], answer: AnswersCalls, max_body_bytes: int, **about: Any) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._described = [tool.described() for tool in tools]
        self._answer = answer
        self._max_body_bytes = max_body_bytes
        self._server: Server[Any] = Server(on_list_tools=self._list_tools, on_call_tool=self._call_tool, **about)
        self._sessions: StreamableHTTPSessionManager | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve inside this context: a fresh session manager each time, since one can run only once."""
        self._sessions = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=self._max_body_bytes
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
        await self._sessions.handle_request(scope, replayed(body, receive), send)

    async def _list_tools(self, _: ServerRequestContext[Any], params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=self._described)

    async def _call_tool(
        self, context: ServerRequestContext[Any, Request], params: CallToolRequestParams
    ) -> CallToolResult:
        assert context.request is not None
        tool = self._tools.get(params.name)
        if tool is None:
            return _failed(f"there is no tool {params.name[:100]!r} here; {self._known()}")
        try:
            arguments = tool.arguments().model_validate(params.arguments or {})
        except ValidationError as error:
            problem = error.errors()[0]
            field = ".".join(map(str, problem["loc"]))[:100]
            return _failed(f"{field!r}: {problem['msg']}")
        try:
            output = await self._answer(tool.name, arguments.input, arguments.date, context.request)
        except NoAnswer as no:
            return _failed(str(no))
        return CallToolResult(content=[TextContent(type="text", text=output)], structured_content={"output": output})

    def _known(self) -> str:
        names = list(self._tools)
        return f"the one tool is {names[0]!r}" if len(names) == 1 else f"the tools are: {', '.join(names) or 'none'}"


def _failed(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
