"""Sessions with an MCP server at an address, over streamable HTTP.

Each call has a session of its own. It costs a handshake, but a server that was started anew is simply there again, no
call ends with another's, and a call that is aborted ends all that it began.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolformer.outside import McpServer
from toolformer.tool_wire import ErrorCode, Failed
from toolformer.tools import Tool
from toolformer.wires import busy, propagated, redirected, secret_headers

_GOODBYE_S = 0.5


def connections() -> httpx2.AsyncHTTPTransport:
    """The connections to all MCP servers; held while tools are called."""
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=2.0)
    return httpx2.AsyncHTTPTransport(limits=limits, trust_env=False)


class HttpSessions:
    """Sessions with the server at the tool's ``url``."""

    def __init__(self, tool: Tool, server: McpServer, transport: httpx2.AsyncBaseTransport) -> None:
        self._tool = tool
        self._server = server
        self._transport = transport
        self._mode = "auto"

    @asynccontextmanager
    async def open(self, max_bytes: int, headers: Mapping[str, str]) -> AsyncIterator[Client]:
        """See `Sessions`."""
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
            if guard.failure is not None:
                raise guard.failure from error
            if guard.status >= 400:
                error.add_note(f" (HTTP {guard.status})")
            raise


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
