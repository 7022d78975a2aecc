"""The model server is a process of its own here, killed while many completions stream from it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from inference_gateway.app import create_app
from inference_gateway.backends.loading import backend_loader
from inference_gateway.settings import GatewaySettings
from tests.inference_gateway.http_harness import answered, serving, tools_at
from tests.support.processes import started
from tests.support.redis_server import free_port

CLIENTS = 12


async def events_of(http: httpx.AsyncClient, began: asyncio.Semaphore) -> list[dict[str, Any]]:
    """The events of a streamed completion, or the error that stood in their place. ``began`` counts first events."""
    body = {"prompt": "Each of the", "max_tokens": 1800, "stream": True, "tools": []}
    async with http.stream("POST", "/v1/completions", json=body) as response:
        if response.status_code != 200:
            return [json.loads(await response.aread())]
        events: list[dict[str, Any]] = []
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                if not events:
                    began.release()
                events.append(json.loads(line.removeprefix("data: ")))
        assert line == "" or line == "data: [DONE]"
        return events


@pytest.mark.slow
async def test_a_killed_server_ends_every_completion_once_and_service_returns_with_it(checkpoint: Path) -> None:
    port = str(free_port())
    env = {"TOOLFORMER_MODEL": str(checkpoint), "TOOLFORMER_GATEWAY_PORT": port, "OMP_NUM_THREADS": "1"}
    settings = GatewaySettings(
        model=checkpoint, backend="openai", backend_url=f"http://127.0.0.1:{port}", backend_probe_seconds=0.1
    )
    app = create_app(backend_loader(settings), tools_at({}), settings)
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:

        async def ready(status: int) -> dict[str, Any]:
            body: dict[str, Any] = (await answered(http, "/ready", status)).json()
            return body

        await ready(503)
        async with started("inference_gateway", env=env) as server:
            await server.line_with("ready: model")
            assert (await ready(200))["model"] == checkpoint.name
            began = asyncio.Semaphore(0)
            clients = [asyncio.create_task(events_of(http, began)) for _ in range(CLIENTS)]
            async with asyncio.timeout(60):
                for _ in clients:
                    await began.acquire()
            server.process.kill()
            async with asyncio.timeout(60):
                streams = await asyncio.gather(*clients)
        for events in streams:
            errors = [event["error"] for event in events if "error" in event]
            ends = [choice for event in events for choice in event.get("choices", ()) if choice["finish_reason"]]
            assert len(errors) + len(ends) == 1, "each has one end"
            assert all(f"127.0.0.1:{port}" in error["message"] for error in errors)
        # On a busy machine a stream may have ended before the last one began.
        assert any("error" in events[-1] for events in streams)
        assert "the model server is away" in (await ready(503))["error"]["message"]
        async with started("inference_gateway", env=env) as server:
            await server.line_with("ready: model")
            await ready(200)
            answer = await http.post("/v1/completions", json={"prompt": "Each", "max_tokens": 4, "tools": []})
            assert answer.json()["choices"][0]["finish_reason"] == "length"
