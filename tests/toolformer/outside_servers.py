"""Tools from outside for tests: tables over the packaged ones, and a real MCP server made with the SDK, which serves
over its standard input and output where this file is run."""

import asyncio
import os
import signal
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
    """Serve `tools`; gives the URL. When left, all is cut off at once."""
    app = tools(version).streamable_http_app(stateless_http=stateless, json_response=stateless)
    async with serving(app, port, drain_seconds=0) as url:
        yield f"{url}/mcp"


def tools(version: str = "1.0") -> MCPServer:
    """Tools that work out, fail, wait, talk too much, and name their process or stop it."""
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

    @server.tool()
    def process(variable: str) -> str:
        return f"{os.getpid()} {os.environ.get(variable)}"

    @server.tool()
    def stop(text: str) -> str:
        os.kill(os.getpid(), signal.Signals[text])
        return text

    return server


if __name__ == "__main__":
    tools().run("stdio")
