"""An ASGI app served for a test."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serving(app: Any, port: int = 0, *, drain_seconds: int = 5) -> AsyncIterator[str]:
    """Serve ``app`` with uvicorn on ``port`` (0: a free one); gives its address."""
    with socket.create_server(("127.0.0.1", port)) as listener:  # connections queue from here on
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=drain_seconds))
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task
