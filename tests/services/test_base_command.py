"""``python -m services.<name>``: settings from the environment, a server that drains."""

import re
import signal
from pathlib import Path

import httpx
import pytest
from pydantic import Field
from pydantic_settings import BaseSettings

from services.base import ConfigurationError, read_settings
from tests.support.processes import started


class Settings(BaseSettings):
    depth: int = Field(3, ge=1)
    index_path: Path = Path("index")


def test_settings_come_from_the_services_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_WIKI_SEARCH_INDEX_PATH", "elsewhere")
    monkeypatch.setenv("TOOLFORMER_OTHER_DEPTH", "9")
    settings = read_settings(Settings, "wiki_search")
    assert settings.index_path == Path("elsewhere")
    assert settings.depth == 3


def test_a_setting_that_cannot_hold_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLFORMER_WIKI_SEARCH_DEPTH", "0")
    with pytest.raises(ConfigurationError, match=r"TOOLFORMER_WIKI_SEARCH_DEPTH: .*greater than or equal to 1"):
        read_settings(Settings, "wiki_search")


async def test_a_service_runs_answers_and_drains() -> None:
    async with started("services.calculator", env={"TOOLFORMER_CALCULATOR_PORT": "0"}) as server:
        url = await server.url()
        async with httpx.AsyncClient(timeout=30) as client:
            response = await client.post(f"{url}/call", json={"input": "27 + 4 * 2"})
            assert response.json()["output"] == "35"
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
    log = server.log
    assert "calculator: ready after" in log
    assert len(re.findall("uvicorn.access", log)) == 1
    assert "ERROR" not in log
    assert "WARNING" not in log


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TOOLFORMER_CALENDAR_PORT", "99999", "TOOLFORMER_CALENDAR_PORT: Input should be less than or equal to 65535"),
        ("TOOLFORMER_CALENDAR_TIMEZONE", "Mars/Base", "there is no time zone 'Mars/Base'; use an IANA name"),
    ],
)
async def test_a_bad_setting_is_one_clear_line(variable: str, value: str, message: str) -> None:
    async with started("services.calendar", env={variable: value}) as server:
        assert await server.ended() == 2
    [line] = server.lines["log"]
    assert line.startswith(f"calendar: {variable}: ")
    assert message in line
