"""The calendar: its sentence, its clock, its service."""

import datetime
from collections.abc import AsyncIterator
from zoneinfo import ZoneInfo

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.base import ConfigurationError
from services.calendar.app import INFO, build_app
from services.calendar.engine import Clock, sentence
from tests.toolformer.http_api.asgi import error_of, running, until_ready

MOMENT = datetime.datetime(2026, 11, 20, 23, 30, tzinfo=datetime.UTC)


def clock(zone: str) -> Clock:
    return Clock(ZoneInfo(zone), MOMENT.astimezone)


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with running(build_app(clock("UTC"))) as client:
        await until_ready(client)
        yield client


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        ("2026-11-20", "Today is Friday, November 20, 2026."),
        ("2023-01-30", "Today is Monday, January 30, 2023."),
        ("2024-02-29", "Today is Thursday, February 29, 2024."),
        ("0001-01-01", "Today is Monday, January 1, 1."),
        ("9999-12-31", "Today is Friday, December 31, 9999."),
    ],
)
def test_sentence(day: str, expected: str) -> None:
    assert sentence(datetime.date.fromisoformat(day)) == expected


@settings(deadline=None)
@given(st.dates(min_value=datetime.date(1000, 1, 1)))
def test_the_names_are_those_of_the_c_locale(day: datetime.date) -> None:
    assert sentence(day) == f"Today is {day:%A}, {day:%B} {day.day}, {day:%Y}."


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", "2026-11-20"),
        ("Europe/Berlin", "2026-11-21"),
        ("Pacific/Kiritimati", "2026-11-21"),
        ("America/Los_Angeles", "2026-11-20"),
    ],
)
def test_today_is_the_zones(zone: str, day: str) -> None:
    assert clock(zone).today() == datetime.date.fromisoformat(day)


def test_the_default_clock_is_the_machines() -> None:
    zone = ZoneInfo("Asia/Tokyo")
    before = datetime.datetime.now(zone).date()
    today = Clock(zone).today()
    assert before <= today <= datetime.datetime.now(zone).date()


async def test_call(client: httpx.AsyncClient) -> None:
    for text in ("", "  \n"):
        body = (await client.post("/call", json={"input": text})).json()
        assert (body["tool"], body["output"]) == ("Calendar", INFO.example_output)
    response = await client.post("/call", json={"input": "", "context": {"date": "2023-01-30"}})
    assert response.json()["output"] == "Today is Monday, January 30, 2023."
    refused = (await client.post("/call", json={"input": "tomorrow"})).json()
    assert "leave it empty" in refused["error"]["message"]


async def test_today() -> None:
    async with running(build_app(clock("Europe/Berlin"))) as client:
        await until_ready(client)
        assert (await client.get("/today")).json() == {
            "date": "2026-11-21",
            "weekday": "Saturday",
            "timezone": "Europe/Berlin",
            "text": "Today is Saturday, November 21, 2026.",
        }
        given = (await client.get("/today", params={"date": "2024-02-29"})).json()
        assert (given["date"], given["weekday"]) == ("2024-02-29", "Thursday")


@pytest.mark.parametrize("date", ["2026-02-29", "today", "20261120", "1700000000", ""])
async def test_today_refuses_what_is_no_day(client: httpx.AsyncClient, date: str) -> None:
    response = await client.get("/today", params={"date": date})
    assert response.status_code == 422
    assert error_of(response)["param"] == "date"
    assert "YYYY-MM-DD" in str(error_of(response)["message"])


@pytest.mark.parametrize(
    "name", ["Mars/Base", "../../etc/passwd", "/etc/localtime", "Europe", "", "a\x00b", "x" * 5_000]
)
def test_a_zone_that_is_none_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The environment cannot carry a NUL, so the reader of the environment is handed a dictionary.
    monkeypatch.setattr("os.environ", {"TOOLFORMER_CALENDAR_TIMEZONE": name})
    with pytest.raises(ConfigurationError, match="TOOLFORMER_CALENDAR_TIMEZONE: there is no time zone"):
        build_app()


def test_the_zone_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_CALENDAR_TIMEZONE", "Asia/Tokyo")
    build_app()
    monkeypatch.delenv("TOOLFORMER_CALENDAR_TIMEZONE")
    build_app()
