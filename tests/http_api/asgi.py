"""An app under test in this process: its lifespan runs, requests go straight to it without a socket."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import httpx
from fastapi import FastAPI


@contextlib.asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A client of ``app`` while its lifespan runs. An exception the app lets through reaches the test."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://test", timeout=10) as client,
    ):
        yield client


def error_of(response: httpx.Response) -> dict[str, str | None]:
    """The error in a response, whose shape is checked on the way."""
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    assert error["type"]
    assert error["code"]
    assert isinstance(error, dict)
    return error
