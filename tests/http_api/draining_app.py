"""Served by `test_serving` in a process of its own: ``/slow`` answers when a line comes in on standard input."""

from __future__ import annotations

import asyncio
import logging
import sys
import time

from fastapi import FastAPI

from http_api import configure_logging, install_error_handlers, serve

app = FastAPI()
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
    serve(app, "127.0.0.1", int(sys.argv[1]), drain_seconds=int(sys.argv[2]))
