"""A service is up while its engine loads, says why it is not ready, and stops what it started."""

import asyncio

import pytest

from services.base import CannotStart, create_app
from tests.services.fake_tool import INFO, UpperEngine
from tests.toolformer.http_api.asgi import error_of, running, until, until_ready


async def test_health_answers_while_the_engine_loads_and_calls_wait_outside() -> None:
    engine = UpperEngine()
    engine.may_start.clear()
    async with running(create_app(INFO, engine)) as client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        for response in (
            await client.get("/ready"),
            await client.post("/call", json={"input": "a"}),
            await client.post("/calls", json={"calls": [{"input": "a"}]}),
        ):
            assert response.status_code == 503
            assert response.headers["retry-after"] == "2"
            assert error_of(response)["code"] == "not_ready"
            assert error_of(response)["message"] == "upper cannot answer: it is still loading"

        engine.may_start.set()
        await until_ready(client)
        assert (await client.get("/ready")).json() == {"status": "ready"}
        assert (await client.post("/call", json={"input": "a"})).json()["output"] == "A"
    assert engine.stopped == 1


async def test_a_start_that_fails_is_logged_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    engine = UpperEngine()
    engine.start_error = FileNotFoundError("no index at models/index; build it with the index command")
    async with running(create_app(INFO, engine)) as client:

        async def logged() -> bool:
            return "could not start" in caplog.text

        await until(logged)
        response = await client.get("/ready")
        assert response.status_code == 503
        assert "FileNotFoundError: no index at models/index; build it" in str(error_of(response)["message"])
        assert (await client.get("/health")).status_code == 200
    assert "Traceback" in caplog.text
    assert engine.stopped == 1


async def test_a_shutdown_during_loading_cancels_it() -> None:
    engine = UpperEngine()
    engine.may_start.clear()
    async with running(create_app(INFO, engine)) as client:
        await client.get("/ready")
    assert engine.stopped == 1
    assert [task for task in asyncio.all_tasks() if task.get_name() == "load upper"] == []


async def test_an_engine_that_cannot_stop_does_not_stop_the_shutdown(caplog: pytest.LogCaptureFixture) -> None:
    engine = UpperEngine()
    engine.stop_error = RuntimeError("stuck")
    async with running(create_app(INFO, engine)):
        pass
    assert "upper: the engine did not stop cleanly" in caplog.text


async def test_an_app_can_run_again() -> None:
    app = create_app(INFO, UpperEngine())
    for _ in range(2):
        async with running(app) as client:
            await until_ready(client)
            assert (await client.post("/call", json={"input": "a"})).json()["output"] == "A"


async def test_an_engine_that_can_never_start_is_one_clear_line(caplog: pytest.LogCaptureFixture) -> None:
    engine = UpperEngine()
    engine.start_error = CannotStart("models/upper.bin is torn; copy it again")
    app = create_app(INFO, engine)
    calls: list[str] = []
    app.state.runner.on_cannot_start = lambda: calls.append("end")
    async with running(app) as client:

        async def ended() -> bool:
            return bool(calls)

        await until(ended)
        assert error_of(await client.get("/ready"))["message"] == (
            "upper cannot answer: it cannot start: models/upper.bin is torn; copy it again"
        )
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "upper cannot start: models/upper.bin is torn; copy it again"
    ]
    assert "Traceback" not in caplog.text
