"""Tools and a gateway for the HTTP tests, over real sockets."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from language_model.checkpoint import save as save_model
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.inference_gateway.http_harness import Gateway, gateway, serving
from tests.support.models import SMALL, random_model
from tests.support.vocabularies import save_small_tokenizer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plain() -> AsyncIterator[Gateway]:
    """A gateway whose tools are all down, for all tests of a file."""
    async with gateway() as running:
        yield running
        assert (await running.complete("Plain:"))["choices"][0]["text"] == " a plain text."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tooled() -> AsyncIterator[Gateway]:
    """A gateway with the project's own calculator and calendar, for all tests of a file."""
    async with (
        serving(calculator()) as calculator_url,
        serving(calendar()) as calendar_url,
        gateway({"Calculator": calculator_url, "Calendar": calendar_url}) as running,
    ):
        yield running


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint directory of random weights, as the gateway loads it."""
    directory = tmp_path_factory.mktemp("gptj-random")
    save_model(random_model(dataclasses.replace(SMALL, n_positions=2048)), directory)
    save_small_tokenizer(directory)
    return directory
