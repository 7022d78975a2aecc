"""What a local backend computes its steps with."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from inference_gateway.backends.local import LocalBackend
from inference_gateway.engine.limits import EngineLimits
from inference_gateway.settings import BUNDLED_MODEL
from language_model.config import CheckpointError
from language_model.native import library
from language_model.native.packing import Weights
from services.calculator.app import build_app as calculator
from tests.inference_gateway.http_harness import gateway, serving


def test_without_a_compiler_torch_computes_and_the_log_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    library.load.cache_clear()
    with caplog.at_level(logging.INFO):
        LocalBackend.load(BUNDLED_MODEL, limits=EngineLimits(max_sequences=1))
    assert "steps are computed by torch: the C compiler no-such-compiler does not work" in caplog.text


@pytest.mark.parametrize("weights", [Weights.BFLOAT16, Weights.INT8])
async def test_weights_of_fewer_bits_pause_and_go_on(weights: Weights, tmp_path: Path) -> None:
    """The bundled model's call is answered in its place, and nothing of it is computed again."""
    folder = shutil.copytree(BUNDLED_MODEL, tmp_path / "model")
    backend = LocalBackend.load(folder, limits=EngineLimits(max_sequences=2), weights=weights)
    async with serving(calculator()) as url, gateway({"Calculator": url}, make=lambda: backend) as served:
        prompt = "There are 24 boxes with 17 books each. How many books are there altogether? The answer is"
        [choice] = (await served.complete(prompt))["choices"]
        assert [(call["tool"], call["output"]) for call in choice["tool_calls"]] == [("Calculator", "408")]
        assert "-> 408]" in choice["text"]
        assert await served.metric("toolformer_recomputed_tokens_total") == 0


@pytest.mark.parametrize(("change", "says"), [({"device": "cuda"}, "on a CPU"), ({"compiled_step": False}, "compiled")])
def test_whole_numbers_are_for_compiled_code(change: dict[str, Any], says: str) -> None:
    with pytest.raises(CheckpointError, match=f"dtype int8 is for GPT-J .*{says}.*: take bfloat16"):
        LocalBackend.load(BUNDLED_MODEL, limits=EngineLimits(max_sequences=1), weights=Weights.INT8, **change)
