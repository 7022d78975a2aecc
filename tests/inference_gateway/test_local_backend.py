"""What a local backend computes its steps with."""

import logging
from pathlib import Path

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.settings import BUNDLED_MODEL
from language_model.native import library


def test_without_a_compiler_torch_computes_and_the_log_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    library.load.cache_clear()
    with caplog.at_level(logging.INFO):
        LocalBackend.load(BUNDLED_MODEL, limits=EngineLimits(max_sequences=1))
    assert "steps are computed by torch: the C compiler no-such-compiler does not work" in caplog.text
