"""The way to a tool of an MCP server, by the official SDK's client: over streamable HTTP (`mcp_http`), or over the
standard input and output of a process (`mcp_process`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Protocol

import httpx
import httpx2
from mcp import MCPError
from mcp.client import Client
from mcp_types import CONNECTION_CLOSED, CallToolRequest, CallToolRequestParams, CallToolResult, TextContent
from pydantic import ValidationError

from toolformer.mcp_http import HttpSessions, connections
from toolformer.mcp_process import ProcessSessions
from toolformer.outside import McpServer, fill
from toolformer.tool_wire import ErrorCode, Failed, Request, ToolError, usable_version
from toolformer.tools import Tool
from toolformer.wires import Answered, Wire, no_result, picked

_MAX_LIST_BYTES = 4 * 1024 * 1024
_MAX_PAGES = 100


class Sessions(Protocol):
    """Sessions with one server."""

    def open(self, max_bytes: int, headers: Mapping[str, str]) -> AbstractAsyncContextManager[Client]:
        """A session for one exchange, of whose answer at most ``max_bytes`` are taken; ``headers`` are the caller's.
        It may raise what a `Wire` raises, and the SDK's errors."""
        ...


async def mcp_wires(tools: Iterable[Tool], held: AsyncExitStack) -> dict[str, Wire]:
    """The wires to those ``tools`` that are MCP servers', by name; they work until ``held`` is closed."""
    wires: dict[str, Wire] = {}
    transport = await held.enter_async_context(connections())
    for tool in tools:
        if tool.mcp is None:
            continue
        sessions: Sessions = HttpSessions(tool, tool.mcp, transport)
        if tool.mcp.command:
            sessions = await held.enter_async_context(ProcessSessions(tool, tool.mcp))
        wires[tool.name] = McpWire(tool, tool.mcp, sessions)
    return wires


class McpWire:
    """To a tool of an MCP server as its table describes it."""

    def __init__(self, tool: Tool, server: McpServer, sessions: Sessions) -> None:
        self._tool = tool
        self._server = server
        self._sessions = sessions

    async def ask(
        self, requests: Sequence[Request], *, batched: bool, max_bytes: int, headers: Mapping[str, str]
    ) -> Answered:
        """``tools/call`` for one call."""
        [request] = requests
        assert not batched
        arguments = fill(self._server.arguments, request.input)
        asked = CallToolRequest(params=CallToolRequestParams(name=self._server.tool, arguments=arguments))
        async with self._session(max_bytes, headers) as client:
            # Not `call_tool`, which would list all tools each time to check the answer against their schemas.
            result = await client.session.send_request(asked, CallToolResult)
            if len(result.model_dump_json()) > max_bytes:
                raise Failed(ErrorCode.TOO_LARGE, f"the answer has more than {max_bytes:,} bytes")
            return Answered([self._outcome(result)], _version(client))

    async def ready(self) -> str:
        """Whether the server lists the tool."""
        async with self._session(_MAX_LIST_BYTES, {}) as client:
            cursor, names = None, list[str]()
            for _ in range(_MAX_PAGES):
                page = await client.list_tools(cursor=cursor)
                names += [tool.name for tool in page.tools]
                if self._server.tool in names:
                    return _version(client)
                if not (cursor := page.next_cursor):
                    break
            known = ", ".join(names[:20]) or "none"
            raise Failed(ErrorCode.BAD_RESPONSE, f"the server has no tool {self._server.tool!r}; it has: {known}")

    def _outcome(self, result: CallToolResult) -> str | ToolError:
        text = "\n".join(content.text for content in result.content if isinstance(content, TextContent)).strip()
        if result.is_error:
            return ToolError("tool_error", text or "the tool says that it failed")
        if not self._server.answer:
            return text or no_result("the result has no text")
        if result.structured_content is None:
            return picked(self._tool, self._server, text)
        found = self._server.pick(result.structured_content)
        return no_result(f"the result has no {self._server.answer}") if found is None else found

    @asynccontextmanager
    async def _session(self, max_bytes: int, headers: Mapping[str, str]) -> AsyncIterator[Client]:
        """A session with the server; inside it, all that goes wrong becomes what a `Wire` raises."""
        try:
            async with self._sessions.open(max_bytes, headers) as client:
                yield client
        except Exception as error:
            raise self._explained(error) from error

    def _explained(self, error: Exception) -> Exception:
        for leaf in _leaves(error):
            if isinstance(leaf, Failed | httpx.RequestError):
                return leaf
            if isinstance(leaf, httpx2.RequestError) or (isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED):
                return httpx.RequestError(str(leaf) or type(leaf).__name__)
            if isinstance(leaf, MCPError | ValidationError | RuntimeError):
                said = leaf.message if isinstance(leaf, MCPError) else f"not MCP's form ({type(leaf).__name__})"
                notes = "".join(getattr(error, "__notes__", ()))
                return Failed(ErrorCode.BAD_RESPONSE, f"{self._tool.name}: {said[:500]}{notes}")
        return error


def _version(client: Client) -> str:
    return usable_version(client.server_info.version if client.server_info else "")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
