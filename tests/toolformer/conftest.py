"""Settings for the tests of the tool client."""

import pytest

from toolformer import tool_client


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not make a service look as if it had no version."""
    monkeypatch.setattr(tool_client, "VERSION_SECONDS", 60.0)
