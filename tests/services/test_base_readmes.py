"""What the services' READMEs show is what the services answer: each ``$ curl`` line is sent, its answer compared."""

import itertools
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from services.calculator.app import build_app as build_calculator
from services.calendar.app import build_app as build_calendar
from tests.toolformer.http_api.asgi import running, until_ready

SERVICES = Path(__file__).parents[2] / "services"
BUILD: dict[str, Callable[[], FastAPI]] = {"calculator": build_calculator, "calendar": build_calendar}


def shown(service: str) -> list[tuple[str, str]]:
    """The commands a README shows, each with the line below it."""
    lines = (SERVICES / service / "README.md").read_text().splitlines()
    return [
        (line.removeprefix("$ "), answer) for line, answer in itertools.pairwise(lines) if line.startswith("$ curl")
    ]


def as_request(command: str) -> httpx.Request:
    """The request that a curl command line makes."""
    words = iter(shlex.split(command)[1:])
    url, body, query = "", None, {}
    for word in words:
        if word == "-H":
            assert next(words) == "Content-Type: application/json"
        elif word == "-d":
            body = next(words)
        elif word == "--data-urlencode":
            name, _, value = next(words).partition("=")
            query[name] = value
        elif not word.startswith("-"):
            url = f"http://{word}"
    if body is None:
        return httpx.Request("GET", httpx.URL(url).copy_merge_params(query))
    return httpx.Request("POST", url, content=body, headers={"Content-Type": "application/json"})


def comparable(text: str) -> Any:
    """An answer without the one part that differs from run to run."""
    answer = json.loads(text)
    answer.pop("duration_ms", None)
    return answer


@pytest.mark.parametrize("service", BUILD)
async def test_the_readme_is_true(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLFORMER_CALENDAR_TIMEZONE", raising=False)
    examples = shown(service)
    assert examples
    async with running(BUILD[service]()) as client:
        await until_ready(client)
        for command, answer in examples:
            response = await client.send(as_request(command))
            assert comparable(response.text) == comparable(answer), command
