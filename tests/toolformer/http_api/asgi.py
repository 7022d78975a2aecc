"""An app under test in this process: its lifespan runs, requests go straight to it without a socket."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
from fastapi import FastAPI


@contextlib.asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of ``app`` while its lifespan runs. An exception the app lets through reaches the test.

    As under a real server, the lifespan has a task of its own: begun and ended in one task, wherever fixtures run.
    """
    up, down = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            up.set()
            await down.wait()

    lifespan = asyncio.create_task(live())
    coming_up = asyncio.create_task(up.wait())
    await asyncio.wait({lifespan, coming_up}, return_when=asyncio.FIRST_COMPLETED)
    if lifespan.done():
        coming_up.cancel()
        await lifespan  # Raises what kept the app from starting.
    try:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as client:
            yield client
    finally:
        down.set()
        await lifespan


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Let the other tasks run until ``holds`` says yes; fails if a thousand turns are not enough."""
    for _ in range(1_000):
        if await holds():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to hold")


async def until_ready(client: httpx.AsyncClient) -> None:
    """Let a service's engine start."""

    async def ready() -> bool:
        return (await client.get("/ready")).status_code == 200

    await until(ready)


def error_of(response: httpx.Response) -> dict[str, str | None]:
    """The error in a response, whose shape is checked on the way."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    error = body["error"]
    assert isinstance(error, dict)
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert error["type"]
    assert error["code"]
    return error
