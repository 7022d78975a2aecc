"""From start to stop: loading, a model that cannot be loaded, a drain at SIGTERM."""

import asyncio
import json
import os
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from inference_gateway.__main__ import main
from inference_gateway.app import create_app
from inference_gateway.backends.base import Backend
from inference_gateway.settings import GatewaySettings, SettingsError
from language_model.config import CheckpointError
from tests.inference_gateway.http_harness import answered, scripted_backend, serving, tools_at
from tests.support.processes import started


@asynccontextmanager
async def not_loaded_yet() -> AsyncIterator[tuple[str, threading.Event]]:
    """A gateway whose model is loaded when the event is set."""
    load = threading.Event()

    def slowly() -> Backend:
        assert load.wait(60)
        return scripted_backend()

    async with serving(create_app(slowly, tools_at({}), GatewaySettings())) as url:
        try:
            yield url, load
        finally:
            load.set()


async def test_it_answers_while_the_model_loads() -> None:
    async with not_loaded_yet() as (url, load), httpx.AsyncClient(base_url=url, trust_env=False) as http:
        assert (await http.get("/health")).json() == {"status": "ok"}
        for response in (
            await http.get("/ready"),
            await http.get("/v1/models"),
            await http.post("/v1/completions", json={"prompt": "Plain:"}),
        ):
            assert response.status_code == 503
            assert response.headers["retry-after"] == "2"
            assert response.json()["error"]["code"] == "not_ready"
            assert "still loading" in response.json()["error"]["message"]
        assert "toolformer_num_requests_running 0.0" in (await http.get("/metrics")).text
        load.set()
        await answered(http, "/ready", 200)


async def test_a_model_that_cannot_be_loaded_is_reported() -> None:
    def fail() -> Backend:
        raise CheckpointError("config.json is missing: give a directory that holds a checkpoint")

    async with (
        serving(create_app(fail, tools_at({}), GatewaySettings())) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as http,
    ):
        async with asyncio.timeout(60):
            while "loading" in (answer := await http.get("/ready")).json()["error"]["message"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert answer.status_code == 503
        assert "config.json is missing" in answer.json()["error"]["message"]
        assert (await http.get("/health")).status_code == 200


@pytest.mark.slow
async def test_sigterm_lets_running_completions_end(checkpoint: Path) -> None:
    """The real process: SIGTERM comes while a text streams, which then ends as if nothing had been."""
    env = {"TOOLFORMER_MODEL": str(checkpoint), "TOOLFORMER_GATEWAY_PORT": "0", "OMP_NUM_THREADS": "1"}
    async with started("inference_gateway", env=env) as server:
        url = await server.url()
        await server.line_with("ready: model")
        async with httpx.AsyncClient(base_url=url, timeout=60, trust_env=False) as http:
            body = {"prompt": "Each of the", "max_tokens": 1500, "stream": True, "tools": [], "n": 2}
            async with http.stream("POST", "/v1/completions", json=body) as response:
                lines = response.aiter_lines()
                received = [await anext(lines)]
                server.process.send_signal(signal.SIGTERM)
                await server.line_with("draining.*1 in progress")
                with pytest.raises(httpx.ConnectError):
                    async with httpx.AsyncClient(trust_env=False) as other:
                        await other.get(f"{url}/health")
                received += [line async for line in lines]
        assert await server.ended() == 0
    events = [line.removeprefix("data: ") for line in received if line.startswith("data: ")]
    assert events.pop() == "[DONE]"
    ends = [json.loads(event)["choices"][0] for event in events]
    reasons = [choice["finish_reason"] for choice in ends if choice["finish_reason"]]
    assert reasons == ["length", "length"]
    assert not any("Traceback" in line or "ERROR" in line for line in server.lines["log"])


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TOOLFORMER_GATEWAY_PORT", "eighty", "TOOLFORMER_GATEWAY_PORT"),
        ("TOOLFORMER_GATEWAY_MAX_SEQUENCES", "0", "greater than or equal to 1"),
        ("TOOLFORMER_GATEWAY_DEVICE", "gpu", "cpu, cuda or cuda:<number>"),
        ("TOOLFORMER_MODEL", os.devnull, "holds no checkpoint"),
        ("TOOLFORMER_TOOLS", "/nowhere/tools.toml", "/nowhere/tools.toml: cannot be read"),
    ],
)
def test_a_wrong_setting_stops_it_at_once_with_one_clear_word(
    variable: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(SystemExit) as exited:
        main()
    assert exited.value.code == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("inference_gateway: ")
    assert message in line


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_MODEL", "/models/big")
    monkeypatch.setenv("TOOLFORMER_GATEWAY_API_TOP_K", "3")
    monkeypatch.setenv("MODEL", "/not/this")
    read = GatewaySettings.read()
    assert (read.model, read.api_top_k, read.port) == (Path("/models/big"), 3, 8080)
    monkeypatch.setenv("TOOLFORMER_GATEWAY_API_TOP_K", "-1")
    monkeypatch.setenv("TOOLFORMER_GATEWAY_DTYPE", "int3")
    with pytest.raises(SettingsError) as refused:
        GatewaySettings.read()
    assert [line.split(" ")[0].rstrip(":") for line in str(refused.value).splitlines()] == [
        "TOOLFORMER_GATEWAY_DTYPE",
        "TOOLFORMER_GATEWAY_API_TOP_K",
    ]
