"""Tools from outside for tests: tables over the packaged ones, and a real MCP server made with the SDK."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer

from tests.support.serving import serving
from toolformer.tools import Tool, ToolRegistry


def registry(url: str, **fields: Any) -> ToolRegistry:
    """The packaged calculator alone, at ``url``, with ``fields``."""
    calculator = ToolRegistry.load(files=[], environ={}).get("Calculator")
    return ToolRegistry([Tool.model_validate(dict(calculator) | {"url": url} | fields)])


@asynccontextmanager
async def mcp_server(port: int = 0, *, version: str = "1.0", stateless: bool = False) -> AsyncIterator[str]:
    """Serve tools that work out, fail, wait and talk too much; gives the URL. When left, all is cut off at once."""
    server = MCPServer("outside", version=version)

    @server.tool()
    def work_out(sum: str) -> dict[str, Any]:
        left, _, right = sum.split(" ")
        return {"all": [{"value": int(left) * int(right)}]}

    @server.tool()
    def say(text: str) -> str:
        return f"said {text}"

    @server.tool()
    def fail(text: str) -> str:
        raise ValueError(f"cannot {text}")

    @server.tool()
    async def wait(text: str) -> str:
        await asyncio.sleep(600)
        return text

    @server.tool()
    def talk(text: str) -> str:
        return text * 500_000

    app = server.streamable_http_app(stateless_http=stateless, json_response=stateless)
    async with serving(app, port, drain_seconds=0) as url:
        yield f"{url}/mcp"
