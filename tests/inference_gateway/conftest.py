"""Tools and a gateway for the HTTP tests, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.calculator.app import build_app as calculator
from services.calendar.app import build_app as calendar
from tests.inference_gateway.http_harness import Gateway, gateway, serving


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
