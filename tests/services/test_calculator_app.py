"""The calculator over HTTP."""

from collections.abc import AsyncIterator

import httpx
import pytest

from services.calculator.app import CalculatorSettings, build_app
from services.calculator.engine import calculate
from tests.toolformer.http_api.asgi import error_of, running, until_ready


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with running(build_app()) as client:
        await until_ready(client)
        yield client


async def test_calculate(client: httpx.AsyncClient) -> None:
    response = await client.get("/calculate", params={"expression": "1,000 + 1"})
    assert response.json() == {"expression": "1,000 + 1", "result": "1001"}


@pytest.mark.parametrize(
    ("expression", "code"),
    [("1/0", "division_by_zero"), ("1 +", "invalid_syntax"), ("", "empty"), ("1" * 1_001, "too_long")],
)
async def test_calculate_without_a_result(client: httpx.AsyncClient, expression: str, code: str) -> None:
    response = await client.get("/calculate", params={"expression": expression})
    assert response.status_code == 422
    assert error_of(response)["code"] == code
    assert error_of(response)["param"] == "expression"


async def test_two_decimals_as_in_table_ten() -> None:
    async with running(build_app(CalculatorSettings(trailing_zeros=True))) as client:
        await until_ready(client)
        for asked, wanted in (("85 / 23", "3.70"), ("27 + 4 * 2", "35"), ("735 / 499", "1.47"), ("-1 / 2", "-0.50")):
            answer = (await client.post("/call", json={"input": asked})).json()
            assert answer["output"] == wanted
            assert (await client.get("/calculate", params={"expression": asked})).json()["result"] == wanted
    assert (calculate("85 / 23"), calculate("-1 / 1000", trailing_zeros=True)) == ("3.7", "0.00")
