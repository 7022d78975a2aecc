"""How one request goes to a tool: to a service of the contract, or to any HTTP API. MCP servers have `mcp_wire`.

A wire sends once and raises; deadlines, retries and circuits are `tool_exchange`'s, caching is `kept_calls`'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import httpx
from pydantic_core import from_json

from toolformer.outside import HttpApi, McpServer, SecretMissing, fill
from toolformer.retry_after import retry_after_s
from toolformer.tool_wire import (
    ErrorCode,
    Failed,
    Request,
    ToolError,
    call_body,
    calls_body,
    check_status,
    read_answer,
    read_answers,
    read_body,
    read_version,
)
from toolformer.tools import Tool

PROPAGATED_HEADERS: Final = frozenset({"traceparent", "tracestate", "x-request-id"})
"""The headers of a caller that travel on to a tool. Others, credentials above all, are left out."""

_MAX_READY_BYTES: Final = 64 * 1024
_REFUSALS: Final = frozenset({400, 404, 410, 422})
"""What APIs say of an input for which they have nothing."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An outcome for each request, in order, and the version of the tool that they hold for; empty if unknown."""

    outcomes: Sequence[str | ToolError]
    version: str


class Wire(Protocol):
    """The way to one tool. Both methods raise ``Failed`` if it answers with no result, ``httpx.RequestError`` if it
    does not answer."""

    async def ask(
        self, requests: Sequence[Request], *, batched: bool, max_bytes: int, headers: Mapping[str, str]
    ) -> Answered:
        """Send ``requests`` (more than one only if the tool takes batches) and read at most ``max_bytes``."""
        ...

    async def ready(self) -> str:
        """The tool's version once it can answer calls; empty if unknown."""
        ...


class ServiceWire:
    """To a service that speaks the contract of `tool_wire`."""

    def __init__(self, tool: Tool, http: httpx.AsyncClient) -> None:
        self._tool = tool
        self._http = http

    async def ask(
        self, requests: Sequence[Request], *, batched: bool, max_bytes: int, headers: Mapping[str, str]
    ) -> Answered:
        """``POST /calls`` for a batch, ``POST /call`` for one."""
        tool = self._tool
        path, body = ("/calls", calls_body(tool, requests)) if batched else ("/call", call_body(tool, requests[0]))
        all_headers = propagated(headers) | {"Content-Type": "application/json"}
        response, content = await _fetch(
            self._http, "POST", tool.url + path, max_bytes, content=body, headers=all_headers
        )
        check_status(response, content)
        outcomes = read_answers(tool, requests, content) if batched else [read_answer(tool, requests[0], content)]
        return Answered(outcomes, read_version(response))

    async def ready(self) -> str:
        """``GET /ready``."""
        response, content = await _fetch(self._http, "GET", f"{self._tool.url}/ready", _MAX_READY_BYTES)
        check_status(response, content)
        return read_version(response)


class HttpWire:
    """To an API as its table describes it."""

    def __init__(self, tool: Tool, api: HttpApi, http: httpx.AsyncClient) -> None:
        self._tool = tool
        self._api = api
        self._http = http

    async def ask(
        self, requests: Sequence[Request], *, batched: bool, max_bytes: int, headers: Mapping[str, str]
    ) -> Answered:
        """One request for one call."""
        [request] = requests
        tool, api = self._tool, self._api
        path = api.path_for(request.input)
        assert not batched
        assert path is not None, "refused before it is sent"
        sent: dict[str, Any] = {"headers": propagated(headers) | secret_headers(tool, api)}
        if api.query:
            sent["params"] = fill({**api.query}, request.input)
        if api.body is not None:
            sent["json"] = fill(api.body, request.input)
        response, content = await _fetch(self._http, api.method, tool.url + path, max_bytes, **sent)
        if response.status_code in _REFUSALS:
            outcome: str | ToolError = no_result(f"HTTP {response.status_code} from {tool.url}")
        else:
            _check(tool, response)
            outcome = self._outcome(response, content)
        return Answered([outcome], read_version(response))

    async def ready(self) -> str:
        """``GET`` of the API's ``ready``."""
        url, headers = self._tool.url + self._api.ready, secret_headers(self._tool, self._api)
        async with self._http.stream("GET", url, headers=headers) as response:
            if self._api.ready or response.status_code in {429, 503} or response.status_code >= 500:
                _check(self._tool, response)
            return read_version(response)

    def _outcome(self, response: httpx.Response, content: bytes) -> str | ToolError:
        tool, api = self._tool, self._api
        if not api.answer:
            text = content.decode(response.charset_encoding or "utf-8", errors="replace").strip()
            return text or no_result(f"{tool.url} answered with nothing")
        return picked(tool, api, content)


def _check(tool: Tool, response: httpx.Response) -> None:
    status = response.status_code
    if status in {429, 503}:
        raise busy(status, response.headers)
    if response.is_redirect:
        raise redirected(status)
    if not response.is_success:
        raise Failed(ErrorCode.BAD_RESPONSE, f"HTTP {status} from {tool.url}; is the tool's table right?")


def busy(status: int, headers: Mapping[str, str]) -> Failed:
    """The API says that it cannot answer now."""
    message = f"the tool cannot answer now (HTTP {status})"
    return Failed(ErrorCode.BUSY, message, retryable=True, retry_after_s=retry_after_s(headers))


def redirected(status: int) -> Failed:
    """The API is elsewhere."""
    return Failed(ErrorCode.BAD_RESPONSE, f"HTTP {status}: redirects are not followed; correct the tool's url")


def no_result(message: str) -> ToolError:
    """The API was asked, and has no answer to this call."""
    return ToolError("no_result", message)


def picked(tool: Tool, outside: HttpApi | McpServer, content: bytes | str) -> str | ToolError:
    """The answer in the JSON ``content``.

    Raises:
        Failed: if it is not JSON.
    """
    try:
        found = outside.pick(from_json(content))
    except ValueError as error:
        raise Failed(ErrorCode.BAD_RESPONSE, f"{tool.name} did not answer in JSON: {error}") from error
    return no_result(f"the result has no {outside.answer}") if found is None else found


def secret_headers(tool: Tool, outside: HttpApi | McpServer) -> dict[str, str]:
    """The headers of the tool's table.

    Raises:
        Failed: if a secret is missing.
    """
    try:
        return outside.read_headers()
    except SecretMissing as missing:
        raise Failed(ErrorCode.UNREACHABLE, f"{tool.name} cannot be asked: {missing}") from None


def propagated(headers: Mapping[str, str]) -> dict[str, str]:
    """Of a caller's ``headers`` those that go on to a tool."""
    # What is not printable ASCII cannot be in a header, and a caller's odd header is no reason to fail the call.
    return {
        name: value
        for name, value in headers.items()
        if name.lower() in PROPAGATED_HEADERS and value.isascii() and value.isprintable()
    }


async def _fetch(
    http: httpx.AsyncClient, method: str, url: str, max_bytes: int, **sent: Any
) -> tuple[httpx.Response, bytes]:
    async with http.stream(method, url, **sent) as response:
        return response, await read_body(response, max_bytes)
