"""Every service declares its limits, in `GET /tool` and in its README, and keeps them."""

import asyncio
from collections.abc import Sequence

import httpx
import pytest

from services.base import Call, ServiceInfo, create_app
from tests.services.real_services import FOLDER, INFOS
from tests.toolformer.http_api.asgi import error_of, running, until, until_ready

every_service = pytest.mark.parametrize("info", INFOS.values(), ids=lambda info: info.service)


class Holding:
    """An engine that is busy until it is released."""

    def __init__(self) -> None:
        self.held = 0
        self.released = asyncio.Event()

    async def start(self) -> None:
        """There is nothing to load."""

    async def stop(self) -> None:
        """There is nothing to release."""

    async def answer(self, calls: Sequence[Call]) -> list[str]:
        """The inputs, once released."""
        self.held += len(calls)
        await self.released.wait()
        return [call.input for call in calls]


def batch(size: int, text: str = "x") -> dict[str, list[dict[str, str]]]:
    return {"calls": [{"input": text}] * size}


@every_service
async def test_the_tool_says_its_limits(info: ServiceInfo) -> None:
    async with running(create_app(info, Holding())) as client:
        body = (await client.get("/tool")).json()
    assert (body["name"], body["version"], body["takes_context"]) == (info.tool, info.version, info.takes_context)
    limits = ("max_input_chars", "max_batch", "max_in_flight", "max_body_bytes", "answer_seconds")
    assert body["limits"] == {name: getattr(info, name) for name in limits}


@every_service
def test_the_readme_says_its_limits(info: ServiceInfo) -> None:
    said = (
        f"Limits: {info.max_input_chars:,} characters a call, {info.max_batch} calls a batch, {info.max_in_flight} in "
        f"flight (then 503 with `Retry-After`), {info.answer_seconds:g} seconds an answer"
    )
    assert said in (FOLDER / info.service / "README.md").read_text()


@every_service
async def test_a_full_service_refuses_until_there_is_room(info: ServiceInfo) -> None:
    engine = Holding()
    async with running(create_app(info, engine)) as client:
        await until_ready(client)
        sizes = [info.max_batch] * (info.max_in_flight // info.max_batch)
        sizes += [1] * (info.max_in_flight % info.max_batch)
        holding = [asyncio.create_task(client.post("/calls", json=batch(size))) for size in sizes]

        async def full() -> bool:
            return engine.held == info.max_in_flight

        await until(full)
        for refused in (await client.post("/call", json={"input": "x"}), await client.post("/calls", json=batch(1))):
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            assert error_of(refused)["code"] == "busy"
            assert str(info.max_in_flight) in str(error_of(refused)["message"])
        assert (await client.get("/health")).status_code == 200

        engine.released.set()
        assert {response.status_code for response in await asyncio.gather(*holding)} == {200}
        assert (await client.post("/call", json={"input": "x"})).json()["output"] == "x"


@every_service
async def test_what_is_beyond_a_limit_never_reaches_the_engine(info: ServiceInfo) -> None:
    engine = Holding()
    engine.released.set()
    async with running(create_app(info, engine)) as client:
        await until_ready(client)
        too_many = await client.post("/calls", json=batch(info.max_batch + 1))
        assert (too_many.status_code, error_of(too_many)["code"]) == (422, "batch_too_large")
        too_large: httpx.Response = await client.post("/call", json={"input": "x" * info.max_body_bytes})
        assert (too_large.status_code, error_of(too_large)["code"]) == (413, "body_too_large")
        too_long = (await client.post("/call", json={"input": "x" * (info.max_input_chars + 1)})).json()
        assert too_long["error"]["code"] == "input_too_long"
        assert engine.held == 0
        assert (await client.post("/calls", json=batch(info.max_batch))).status_code == 200
        assert engine.held == info.max_batch
