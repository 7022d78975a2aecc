"""Served by `test_serving` in a process of its own: ``/slow`` answers when a line comes in on standard input."""

import asyncio
import logging
import os
import sys
import time

from fastapi import FastAPI, Request

from toolformer.http_api import BodyLimit, configure_logging, connections, install_error_handlers, serve

app = FastAPI()
app.add_middleware(BodyLimit, max_bytes=1_000, seconds=1)
install_error_handlers(app)


@app.get("/slow")
async def slow() -> str:
    """Says in the log that it began, and waits."""
    logging.getLogger("draining_app").info("slow began")
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


@app.get("/stuck")
async def stuck() -> None:
    """Never ends by itself."""
    logging.getLogger("draining_app").info("stuck began")
    await asyncio.Event().wait()


@app.get("/holds")
async def holds() -> None:
    """Lets nothing else happen for a second: who connects meanwhile waits to be accepted."""
    logging.getLogger("draining_app").info("holds")
    time.sleep(1)  # noqa: ASYNC251


@app.post("/length")
async def length(request: Request) -> int:
    """Bytes of the body."""
    return len(await request.body())


@app.get("/broken")
async def broken() -> None:
    """Fails."""
    raise RuntimeError("broken")


@app.get("/health")
async def health() -> str:
    """Silent in the log."""
    return "ok"


if __name__ == "__main__":
    configure_logging()
    serve(
        app,
        os.environ.get("BIND", "127.0.0.1"),
        int(sys.argv[1]),
        drain_seconds=int(sys.argv[2]),
        head_seconds=float(os.environ.get("HEAD_SECONDS", "60")),
        max_connections=int(os.environ.get("MAX_CONNECTIONS", "2048")),
        protocol=connections.CountedH11 if os.environ.get("PARSER") == "h11" else None,
    )
