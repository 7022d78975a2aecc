"""The way to a tool of an MCP server, by the official SDK's client.

Each call has a session of its own. It costs a handshake, but a server that was started anew is simply there again, no
call ends with another's, and a call that is given up ends all that it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx
import httpx2
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CONNECTION_CLOSED, CallToolRequest, CallToolRequestParams, CallToolResult, TextContent
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from toolformer.outside import McpServer, fill
from toolformer.tool_wire import ErrorCode, Failed, Request, ToolError, usable_version
from toolformer.tools import Tool
from toolformer.wires import Answered, busy, no_result, picked, propagated, redirected, secret_headers

_MAX_LIST_BYTES = 4 * 1024 * 1024
_MAX_PAGES = 100
_GOODBYE_S = 0.5


def connections() -> httpx2.AsyncHTTPTransport:
    """The connections to all MCP servers; held while tools are called."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=2.0)
    return httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)


class McpWire:
    """To a tool of an MCP server as its table describes it."""

    def __init__(self, tool: Tool, server: McpServer, transport: httpx2.AsyncBaseTransport) -> None:
        self._tool = tool
        self._server = server
        self._transport = transport
        self._mode = "auto"

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
        guard = _Guard(self._transport, max_bytes)
        all_headers = propagated(headers) | secret_headers(self._tool, self._server) | {"Accept-Encoding": "identity"}
        try:
            async with (
                httpx2.AsyncClient(transport=guard, headers=all_headers, timeout=None, trust_env=False) as http,
                Client(
                    streamable_http_client(self._tool.url, http_client=http, max_sse_event_size=None),
                    mode=self._mode,
                    cache=None,
                ) as client,
            ):
                # An older server is not asked again whether it is a newer one.
                self._mode = "auto" if client.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"
                yield client
        except Exception as error:
            self._mode = "auto"
            raise self._explained(error, guard) from error

    def _explained(self, error: Exception, guard: _Guard) -> Exception:
        if guard.failure is not None:
            return guard.failure
        for leaf in _leaves(error):
            if isinstance(leaf, Failed):
                return leaf
            if isinstance(leaf, httpx2.RequestError) or (isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED):
                return httpx.RequestError(str(leaf) or type(leaf).__name__)
            if isinstance(leaf, MCPError | ValidationError | RuntimeError):
                said = leaf.message if isinstance(leaf, MCPError) else f"not MCP's form ({type(leaf).__name__})"
                status = f" (HTTP {guard.status})" if guard.status >= 400 else ""
                return Failed(ErrorCode.BAD_RESPONSE, f"{self._tool.name}: {said[:500]}{status}")
        return error


class _Guard(httpx2.AsyncBaseTransport):
    """Lets no answer through that is too large, compressed or a redirect; ``failure`` is what it stopped.

    The SDK hides some of what goes wrong inside it, so the reason is remembered here.
    """

    def __init__(self, transport: httpx2.AsyncBaseTransport, max_bytes: int) -> None:
        self._transport = transport
        self._max_bytes = max_bytes
        self.failure: Failed | None = None
        self.status = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # The goodbye of a session keeps nobody waiting.
        async with asyncio.timeout(_GOODBYE_S if request.method == "DELETE" else None):
            response = await self._transport.handle_async_request(request)
        self.status = response.status_code
        encoding = response.headers.get("Content-Encoding", "identity")
        if self.status in {429, 503} and request.method == "POST":
            self.failure = busy(self.status, response.headers)
        elif response.has_redirect_location:
            self.failure = redirected(self.status)
        elif encoding != "identity":
            message = f"the answer is encoded as {encoding!r}; it must be sent plain"
            self.failure = Failed(ErrorCode.BAD_RESPONSE, message)
        if self.failure is not None:
            await response.aclose()
            raise self.failure
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, self)
        return response

    def count(self, size: int) -> None:
        """Take note of an answer's bytes so far.

        Raises:
            Failed: if there are too many.
        """
        if size > self._max_bytes:
            self.failure = Failed(ErrorCode.TOO_LARGE, f"the answer has more than {self._max_bytes:,} bytes")
            raise self.failure


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, guard: _Guard) -> None:
        self._stream = stream
        self._guard = guard

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            self._guard.count(size)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _version(client: Client) -> str:
    return usable_version(client.server_info.version if client.server_info else "")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
