"""Tools and a gateway for the HTTP tests, over real sockets."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from language_model.checkpoint import save as save_model
from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.inference_gateway.http_harness import Gateway, gateway, serving
from tests.support.models import SMALL, random_model
from tests.support.vocabularies import small_tokenizer


@pytest.fixture
async def plain() -> AsyncIterator[Gateway]:
    """A gateway whose tools are all down."""
    async with gateway() as running:
        yield running


@pytest.fixture
async def tooled() -> AsyncIterator[Gateway]:
    """A gateway with the project's own calculator and calendar."""
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
    small_tokenizer()._backend.save(str(directory / "tokenizer.json"))
    return directory
